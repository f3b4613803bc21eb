package server

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/upstream"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
)

// Found is told what is wrong, with the key of the configuration that it is about.
type Found func(key, message string)

// CheckOptions say how far Check goes.
type CheckOptions struct {
	Offline bool  // no bundle server is asked
	Noted   Found // is told what a start would go on without, and what was not checked; nil: nobody
}

// checkTimeout bounds what bundle servers are asked for a check.
const checkTimeout = 15 * time.Second

// Check finds what a start would find wrong beyond the file itself: its policy bundles, where
// its state is kept, the way to each provider. All of it is reported. Bundle servers are asked,
// unless it stays offline; nothing else is dialled, and nothing made or changed.
func Check(ctx context.Context, cfg *config.Config, o CheckOptions, found Found) {
	if o.Noted == nil {
		o.Noted = func(string, string) {}
	}
	checkPolicy(ctx, cfg, o, found)
	checkState(cfg, found)
	checkProviders(cfg, found)
	checkPlugins(ctx, cfg, found)
}

// checkPlugins finds plugins that would not be loaded, but for those that would have to be
// fetched; a start goes on without them. It also finds those that are used for what they are not.
func checkPlugins(ctx context.Context, cfg *config.Config, found Found) {
	kinds := map[string]string{}
	cache, err := wasm.NewCache("") // what has the same content is compiled once
	if err != nil {
		found("plugins", err.Error())
		return
	}
	for i, c := range cfg.Plugins {
		if strings.HasPrefix(c.Source, "https:") {
			continue
		}
		entry := "plugins[" + strconv.Itoa(i) + "]"
		module, sidecar, err := localModule(c)
		if err != nil {
			found(entry+".source", err.Error())
			continue
		}
		o := pluginOptions(c, module, sidecar)
		o.Cache = cache
		p, err := wasm.Load(ctx, o)
		load, ok := errors.AsType[*wasm.LoadError](err)
		switch {
		case ok:
			for _, f := range load.Faults() {
				found(keyOfFault(entry, f.Path), redactedText(f.Message, c.Config))
			}
		case err != nil:
			found(entry+".source", redactedText(err.Error(), c.Config))
		default:
			kinds[c.Name] = p.Manifest().Kind
			defer p.Release()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		ref := cfg.Providers[name].Adapter
		if kind := kinds[ref.Name]; ref.Kind == config.AdapterPlugin && kind != "" && kind != wasm.KindAdapter {
			found(config.Join("providers", name)+".adapter", "the plugin "+ref.Name+" is a "+kind+", not an adapter")
		}
	}
	guards := func(key string, list []config.Guard) {
		for i, g := range list {
			if kind := kinds[g.Plugin]; kind != "" && kind != wasm.KindGuard {
				found(key+".guards["+strconv.Itoa(i)+"].plugin", "the plugin "+g.Plugin+" is an "+kind+", not a guard")
			}
		}
	}
	for i, k := range cfg.Keys {
		guards("keys["+strconv.Itoa(i)+"]", k.Guards)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Aliases)) {
		guards(config.Join("aliases", name), cfg.Aliases[name].Guards)
	}
}

// keyOfFault is the key of the configuration that a plugin's fault is about.
func keyOfFault(entry string, path []string) string {
	key := entry
	for _, step := range path {
		if _, err := strconv.ParseUint(step, 10, 31); err == nil {
			key += "[" + step + "]"
		} else {
			key = config.Join(key, step)
		}
	}
	return key
}

// CheckAuth holds how each provider's credential is presented against the ways that its adapter
// names. A way that nobody has written, the default, cannot be meant where the adapter does not
// know it: every call would be refused by the provider, so it is an error. One that is written may
// be wanted by what stands between, such as a proxy: it is a warning. given says whether the file
// has a key.
func CheckAuth(cfg *config.Config, given func(key string) bool, found, warn Found) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		known := knownAuth(cfg, p.Adapter)
		if presents(known, p.Auth) {
			continue
		}
		key := config.Join("providers", name) + ".auth"
		ways := strings.Join(known, ", ")
		if !given(key) {
			found(key, "it is not given, and the default "+p.Auth.String()+" is not what the adapter "+p.Adapter.String()+" knows: "+ways)
			continue
		}
		warn(key, "the adapter "+p.Adapter.String()+" knows "+ways+", not "+p.Auth.String()+": that works only where something between here and the provider wants it")
	}
}

// knownAuth are the ways to present a credential that an adapter names, as far as that can be said
// without fetching anything.
func knownAuth(cfg *config.Config, ref config.AdapterRef) []string {
	var m *wasm.Manifest
	switch {
	case ref.Kind == config.AdapterPlugin:
		i := slices.IndexFunc(cfg.Plugins, func(c config.Plugin) bool { return c.Name == ref.Name })
		if i < 0 || strings.HasPrefix(cfg.Plugins[i].Source, "https:") {
			return nil
		}
		module, sidecar, err := localModule(cfg.Plugins[i])
		if err != nil {
			return nil // said elsewhere
		}
		if m, err = wasm.ReadManifest(module); sidecar != nil {
			m, err = wasm.ParseManifest(sidecar)
		}
		if err != nil {
			return nil
		}
	case ref.Kind == config.AdapterNative:
		if src, ok := plugins.Native(ref.Name); ok {
			m, _ = wasm.ParseManifest([]byte(src.Manifest)) // it is ours
		}
	}
	if m == nil {
		return nil
	}
	return m.Auth
}

// loadPolicy opens the bundles that a configuration names; without a revision where they are
// faulty.
func loadPolicy(ctx context.Context, cfg *config.Config, found Found) openedPolicy {
	broken := false
	o := openedPolicy{set: policySet(cfg, func(key, message string) {
		broken = true
		found(key, message)
	})}
	if broken {
		return o
	}
	var err error
	if o.set.Withdrawn, err = policy.OpenWithdrawn(o.set.Dir); err != nil {
		o.unread = err
	}
	if o.revision, o.troubles, err = o.set.Open(ctx, nil); err != nil {
		policyFault(cfg, -1, err, found)
	}
	return o
}

// checkPolicy finds bundles that a start would refuse, those of servers included. Where a server
// does not answer, its last good bundle stands for what it would give, as at a start.
func checkPolicy(ctx context.Context, cfg *config.Config, o CheckOptions, found Found) {
	broken := false
	set := policySet(cfg, func(key, message string) {
		broken = true
		found(key, message)
	})
	if broken {
		return
	}
	type read struct {
		bundle *policy.Bundle
		err    error
	}
	all := make([]read, len(set.Sources))
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i, src := range set.Sources {
		asked.Go(func() {
			ask := set.Read
			if o.Offline {
				ask = set.Offline
			}
			all[i].bundle, all[i].err = ask(limited, src)
		})
	}
	asked.Wait()
	unknown := false
	var bundles []*policy.Bundle
	for i, r := range all {
		var faults policy.Errors
		switch {
		case r.err != nil && (r.bundle == nil || errors.As(r.err, &faults)):
			policyFault(cfg, i, r.err, found)
		case r.err != nil:
			o.Noted(bundleKey(i, "url"), r.err.Error()+"; its last good bundle, which a start would take, was checked")
		case r.bundle == nil:
			o.Noted(bundleKey(i, "url"), "not checked: the bundle server is not asked, and there is no last good bundle in data_dir")
		case o.Offline && cfg.Policy.Bundles[i].URL != "":
			o.Noted(bundleKey(i, "url"), "the bundle server is not asked; its last good bundle was checked")
		}
		if r.bundle == nil {
			unknown = true
			continue
		}
		bundles = append(bundles, r.bundle)
	}
	if unknown {
		if faults := policy.Unparsed(bundles, set.Options); len(faults) > 0 {
			policyFault(cfg, -1, faults, found)
		}
		return
	}
	if len(bundles) == 0 {
		return
	}
	if _, err := policy.Build(ctx, bundles, set.Options); err != nil {
		policyFault(cfg, -1, err, found)
	}
}

// policyFault reports what is wrong with the bundle of that index, or with the one whose file
// a fault names.
func policyFault(cfg *config.Config, index int, err error, found Found) {
	var faults policy.Errors
	if !errors.As(err, &faults) {
		found(keyOfBundle(cfg, index, strings.TrimPrefix(err.Error(), "policy bundle ")), err.Error())
		return
	}
	for _, f := range faults {
		found(keyOfBundle(cfg, index, f.File), f.String())
	}
}

// keyOfBundle is the key of the configuration that a message about a bundle belongs to.
func keyOfBundle(cfg *config.Config, index int, about string) string {
	for i, b := range cfg.Policy.Bundles {
		if index >= 0 && i != index || index < 0 && !strings.HasPrefix(about, b.Name+":") && (b.Path == "" || !strings.HasPrefix(about, b.Path)) {
			continue
		}
		if b.URL != "" {
			return bundleKey(i, "url")
		}
		return bundleKey(i, "path")
	}
	if len(cfg.Policy.Bundles) > 0 {
		return "policy.bundles"
	}
	return "policy"
}

func bundleKey(index int, name string) string {
	return "policy.bundles[" + strconv.Itoa(index) + "]." + name
}

// checkState finds what keeps the gateway from keeping what it must.
func checkState(cfg *config.Config, found Found) {
	if err := storage.Writable(filepath.Join(cfg.DataDir, spoolFile)); err != nil {
		found("data_dir", err.Error())
	}
	if err := storage.Examine(cfg.Storage.URL); err != nil {
		found("storage.url", err.Error())
	}
	if file := cfg.Policy.DecisionLog.File; file != "" {
		if err := storage.Writable(file); err != nil {
			found("policy.decision_log.file", err.Error())
		}
	}
	if file := cfg.Policy.Status.File; file != "" {
		if err := storage.Writable(file); err != nil {
			found("policy.status.file", err.Error())
		}
	}
}

// checkProviders finds what is wrong with a provider's URL, certificates or proxy.
func checkProviders(cfg *config.Config, found Found) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		if !p.Served() {
			continue
		}
		if p.Adapter.Kind == config.AdapterNative && p.Adapter.Name != "openai" {
			if _, ok := plugins.Native(p.Adapter.Name); !ok {
				found(config.Join("providers", name)+".adapter", noAdapter(p.Adapter))
			}
		}
		target, err := targetOf(&p, "")
		if err == nil {
			var pool *upstream.Pool
			if pool, err = upstream.NewPool(upstream.Options{Target: target}); err == nil {
				pool.Close()
			}
		}
		if err != nil {
			found(config.Join("providers", name), err.Error())
		}
	}
}
