package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
)

// pluginHost keeps the Wasm plugins of the generations. A plugin whose module and settings did
// not change is kept over generations; one that a generation no longer names is released when
// the requests of the generations before have ended.
type pluginHost struct {
	log     *telemetry.Log
	metrics *telemetry.Metrics
	dir     string // data_dir/plugins
	cache   *wasm.Cache
	client  *http.Client // for modules behind a URL

	mu      sync.Mutex
	current *pluginSet
}

// pluginSet is the plugins of one generation.
type pluginSet struct {
	byName map[string]*plugin
	fresh  []*wasm.Plugin // loaded for it
}

// plugin is one plugin as the configuration names it.
type plugin struct {
	config   config.Plugin
	digest   string       // of its module, in hex
	identity string       // of the module and all its settings
	loaded   *wasm.Plugin // nil where it could not be loaded
	since    time.Time
	err      error // why the latest module or settings were not taken
	again    bool  // it may be taken later, though nothing has changed: it was out of reach, or did not come up
}

func newPluginHost(log *telemetry.Log, metrics *telemetry.Metrics, dataDir string) (*pluginHost, error) {
	h := &pluginHost{log: log, metrics: metrics, dir: filepath.Join(dataDir, "plugins"), client: http.DefaultClient, current: &pluginSet{byName: map[string]*plugin{}}}
	cache, err := wasm.NewCache(filepath.Join(h.dir, "cache"))
	if err != nil {
		log.Warn("compiled plugins are not kept on disk", "error", err.Error())
		if cache, err = wasm.NewCache(""); err != nil {
			return nil, err
		}
	}
	h.cache = cache
	return h, nil
}

// of finds or loads the plugins that a configuration names, several at a time. One that cannot
// be loaded leaves the one before of that name in place, or disables the channels that use it.
func (h *pluginHost) of(ctx context.Context, cfg *config.Config) *pluginSet {
	h.mu.Lock()
	before := h.current
	h.mu.Unlock()
	set := &pluginSet{byName: map[string]*plugin{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0)) // a start has a wall clock behind it: more at once would run into it
	for _, c := range cfg.Plugins {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			p, fresh := h.get(ctx, c, before.byName[c.Name])
			mu.Lock()
			defer mu.Unlock()
			set.byName[c.Name] = p
			if fresh {
				set.fresh = append(set.fresh, p.loaded)
			}
		})
	}
	wg.Wait()
	return set
}

// get finds or loads one plugin.
func (h *pluginHost) get(ctx context.Context, c config.Plugin, before *plugin) (p *plugin, fresh bool) {
	p = &plugin{config: c, since: time.Now()}
	fail := func(err error) (*plugin, bool) {
		err = redacted(detailOf(err), c.Config)
		p.err = err
		if before != nil && before.loaded != nil {
			kept := *before
			kept.err, kept.again = err, p.again
			h.log.Error("plugin refused; the one before stays", "plugin", c.Name, "error", err.Error())
			return &kept, false
		}
		h.log.Error("plugin cannot be loaded; the channels that use it serve nothing", "plugin", c.Name, "error", err.Error())
		return p, false
	}
	module, sidecar, err := h.module(ctx, c)
	if err != nil {
		p.again = strings.HasPrefix(c.Source, "https:")
		return fail(err)
	}
	sum := sha256.Sum256(module)
	p.digest = hex.EncodeToString(sum[:])
	p.identity = config.Digest(struct {
		Name, Module, Sidecar string
		Settings              config.Document
		Limits                config.PluginLimits
		Grants                []string
	}{c.Name, p.digest, string(sidecar), c.Config, c.Limits, c.Grants})
	if before != nil && before.loaded != nil && before.identity == p.identity {
		kept := *before
		kept.err, kept.again = nil, false
		return &kept, false
	}
	o := pluginOptions(c, module, sidecar)
	o.Cache, o.Log, o.Metrics = h.cache, h.log.Logger, h.metrics
	p.loaded, err = wasm.Load(ctx, o)
	if err != nil {
		p.loaded = nil
		load, ok := errors.AsType[*wasm.LoadError](err)
		p.again = ok && load.Step == wasm.StepStart
		return fail(err)
	}
	h.log.Info("plugin loaded", "plugin", c.Name, "version", p.loaded.Manifest().Version, "sha256", p.digest)
	return p, true
}

// detailOf is why a plugin was refused, without its name: that is said beside it.
func detailOf(err error) error {
	if load, ok := errors.AsType[*wasm.LoadError](err); ok {
		return errors.New(load.Detail())
	}
	return err
}

// redacted is redactedText of an error.
func redacted(err error, config config.Document) error {
	text := err.Error()
	if hidden := redactedText(text, config); hidden != text {
		return errors.New(hidden)
	}
	return err
}

// redactedText hides what stands in a plugin's configuration from a text about it: a schema's
// words and a guest's own quote it, and any of it may be a secret.
func redactedText(text string, config config.Document) string {
	var v any
	if json.Unmarshal([]byte(config.JSON.Reveal()), &v) != nil {
		return text
	}
	var secrets []string
	var collect func(any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= leastSecret && !strings.Contains(telemetry.Redacted, v) {
				secrets = append(secrets, v)
			}
		case []any:
			for _, e := range v {
				collect(e)
			}
		case map[string]any:
			for _, e := range v {
				collect(e)
			}
		}
	}
	collect(v)
	// All at once, the longest first: one may be a part of another, or of what stands for it.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, telemetry.Redacted)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// leastSecret is how long a text must be to be taken for a secret.
const leastSecret = 6

// pluginOptions are what a configuration says of a plugin.
func pluginOptions(c config.Plugin, module, sidecar []byte) wasm.Options {
	return wasm.Options{
		Name: c.Name, Module: module, SHA256: c.SHA256, Manifest: sidecar, Config: []byte(c.Config.JSON.Reveal()), Grants: c.Grants,
		Limits: wasm.Limits{Memory: int64(c.Limits.Memory), CallTimeout: c.Limits.CallTimeout},
	}
}

const (
	maxModule    = 8 << 20
	maxManifest  = 256 << 10
	fetchTimeout = 30 * time.Second
)

// module reads a plugin's module, and the manifest beside it where there is one.
func (h *pluginHost) module(ctx context.Context, c config.Plugin) (module, sidecar []byte, err error) {
	if strings.HasPrefix(c.Source, "https:") {
		module, err = h.fetched(ctx, c)
		return module, nil, err
	}
	return localModule(c)
}

func localModule(c config.Plugin) (module, sidecar []byte, err error) {
	if name, ok := strings.CutPrefix(c.Source, "builtin:"); ok {
		module, err = plugins.Module(name)
		return module, nil, err
	}
	path := strings.TrimPrefix(c.Source, "file:")
	if module, err = readModule(path); err != nil {
		return nil, nil, err
	}
	sidecar, err = readFile(strings.TrimSuffix(path, ".wasm")+".manifest.json", maxManifest, "manifest")
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return module, sidecar, err
}

func readModule(path string) ([]byte, error) {
	return readFile(path, maxModule, "module")
}

// readFile reads a regular file of at most limit bytes. Anything else, such as a pipe that
// nobody writes to, could hold up whoever opens it.
func readFile(path string, limit int64, what string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return bounded(f, limit, what)
}

func bounded(r io.Reader, limit int64, what string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("the %s has more than %d bytes", what, limit)
	}
	return b, err
}

// fetched gets a module from an https URL, or from where an earlier fetch put it: its name is
// its digest, which the configuration pins.
func (h *pluginHost) fetched(ctx context.Context, c config.Plugin) ([]byte, error) {
	digest := strings.ToLower(c.SHA256)
	kept := filepath.Join(h.dir, digest+".wasm")
	if b, err := readModule(kept); err == nil && digestOf(b) == digest {
		return b, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Source, nil)
	if err != nil {
		return nil, errors.New("the source is not a URL that can be fetched")
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the module cannot be fetched: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the module cannot be fetched: status %d", resp.StatusCode)
	}
	b, err := bounded(resp.Body, maxModule, "module")
	if err != nil {
		return nil, fmt.Errorf("the module cannot be fetched: %w", err)
	}
	if got := digestOf(b); got != digest {
		return nil, fmt.Errorf("the module fetched has the sha256 %s, the configuration pins %s", got, digest)
	}
	if err := os.MkdirAll(h.dir, 0o700); err == nil {
		if err := writeWhole(kept, b); err != nil {
			h.log.Warn("a fetched plugin is not kept on disk", "plugin", c.Name, "error", err.Error())
		}
	}
	return b, nil
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeWhole writes a file so that nobody ever reads a part of it.
func writeWhole(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".fetched-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(b); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// forget gives up what was loaded for a generation that came to nothing.
func (s *pluginSet) forget() {
	for _, p := range s.fresh {
		p.Release()
	}
}

// adapters makes the adapter of every provider; there is none where its plugin could not be
// loaded. The error names the provider.
func (s *pluginSet) adapters(cfg *config.Config, log *telemetry.Log) (map[string]adapter.Adapter, error) {
	maxEvent := int(cfg.Stream.MaxEvent)
	native := adapter.NewOpenAI(maxEvent, time.Now)
	all := map[string]adapter.Adapter{}
	for name, p := range cfg.Providers {
		switch ref := p.Adapter; {
		case ref.Kind == config.AdapterNative && ref.Name == "openai":
			all[name] = native
		case ref.Kind == config.AdapterNative:
			a, err := nativeAdapter(ref, maxEvent)
			if err != nil {
				return nil, fmt.Errorf("providers.%s.adapter: %w", name, err)
			}
			all[name] = a
		default:
			known := s.byName[ref.Name]
			if known == nil || known.loaded == nil {
				continue
			}
			m := known.loaded.Manifest()
			if m.Kind != wasm.KindAdapter {
				return nil, fmt.Errorf("providers.%s.adapter: the plugin %s is a %s, not an adapter", name, ref.Name, m.Kind)
			}
			all[name] = adapter.NewGuest(ref.String(), known.loaded, m, maxEvent)
		}
	}
	for name, p := range cfg.Providers {
		if g, ok := all[name].(*adapter.Guest); ok && !presents(g.Manifest().Auth, p.Auth) {
			log.Warn("the provider's adapter does not know this way to present a credential",
				"key", config.Join("providers", name)+".auth", "auth", p.Auth.String(), "known", strings.Join(g.Manifest().Auth, ", "))
		}
	}
	return all, nil
}

// presents says whether an adapter names a way to present a credential. What stands between,
// such as a proxy of the operator's, may want another: so a start goes on, and CheckAuth refuses
// only what nobody has written.
func presents(known []string, a config.Auth) bool {
	return len(known) == 0 || a.Kind == config.AuthNone || slices.Contains(known, a.String()) || slices.Contains(known, string(a.Kind))
}

// guard makes the guard of a plugin; nil where it could not be loaded.
func (s *pluginSet) guard(name string) *adapter.Guard {
	p := s.byName[name]
	if p == nil || p.loaded == nil || p.loaded.Manifest().Kind != wasm.KindGuard {
		return nil
	}
	return adapter.NewGuard(name, p.loaded, p.loaded.Manifest())
}

func noAdapter(ref config.AdapterRef) string {
	return "there is no adapter " + ref.String() + "; there are openai, native:" + strings.Join(plugins.Names(), ", native:") + ", and plugin:NAME"
}

// nativeAdapter makes the adapter of a shipped plugin's native build.
func nativeAdapter(ref config.AdapterRef, maxEvent int) (adapter.Adapter, error) {
	src, ok := plugins.Native(ref.Name)
	if !ok {
		return nil, errors.New(noAdapter(ref))
	}
	m, err := wasm.ParseManifest([]byte(src.Manifest))
	if err != nil {
		return nil, err
	}
	run, err := adapter.NewNative(ref.String(), src.Manifest, src.New, nil)
	if err != nil {
		return nil, err
	}
	return adapter.NewGuest(ref.String(), run, m, maxEvent), nil
}

// swap makes a set the current one. What it does not have any more is released when drained says
// that nobody can be on a generation before it.
func (h *pluginHost) swap(s *pluginSet, drained func() <-chan struct{}) {
	h.mu.Lock()
	before := h.current
	h.current = s
	h.mu.Unlock()
	var gone []*wasm.Plugin
	for name, p := range before.byName {
		if p.loaded == nil {
			continue
		}
		if now := s.byName[name]; now == nil || now.loaded != p.loaded {
			gone = append(gone, p.loaded)
		}
	}
	if len(gone) == 0 {
		return
	}
	done := drained()
	go func() {
		<-done
		for _, p := range gone {
			p.Release()
		}
	}()
}

// wants says whether a plugin is out that may come up later by itself.
func (h *pluginHost) wants() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.current.byName {
		if p.again {
			return true
		}
	}
	return false
}

// close releases everything. Calls that still run are stopped when ctx ends.
func (h *pluginHost) close(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.current.byName {
		if p.loaded != nil {
			_ = p.loaded.Close(ctx)
		}
	}
	h.current = &pluginSet{byName: map[string]*plugin{}}
}

// status is what operators see of the plugins, by name.
func (h *pluginHost) status() []admin.Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []admin.Plugin
	for _, name := range slices.Sorted(maps.Keys(h.current.byName)) {
		p := h.current.byName[name]
		s := admin.Plugin{Name: name, Source: p.config.Source, Status: "disabled", SHA256: p.digest}
		if p.loaded != nil {
			m := p.loaded.Manifest()
			s.Status, s.Kind, s.Version, s.ABI, s.Since = "loaded", m.Kind, m.Version, m.ABI, p.since
			s.Operations, s.Endpoints, s.Capabilities = m.Operations, m.Endpoints, m.Capabilities
		}
		if p.err != nil {
			s.Error = p.err.Error()
		}
		list = append(list, s)
	}
	return list
}

// degraded adds what is wrong with the plugins.
func (h *pluginHost) degraded(to map[string]string) {
	for _, p := range h.status() {
		if p.Error != "" {
			to["plugin "+p.Name] = p.Error
		}
	}
}
