package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
	"github.com/interlock-gateway/interlock/sdk/conformance"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func newPluginCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Make, build, test and look at Wasm plugins: adapters and guards",
		Long: "Make, build, test and look at Wasm plugins: adapters, which translate between OpenAI's format and\n" +
			"a provider's, and guards, which look at what passes.",
		Example: "  interlock plugin new --lang go acme\n" +
			"  cd acme\n" +
			"  interlock plugin test",
		Args: cobra.NoArgs,
	}
	c.AddCommand(
		newPluginNew(), newPluginBuild(), newPluginTest(), newPluginInspect(), newPluginBench(), newPluginWarm(),
	)
	return c
}

const (
	builtinPrefix = "builtin:"
	// maxPluginFile is the most that is read of a module: more than a gateway takes by default, so
	// that one that is too large can be looked at.
	maxPluginFile = 64 << 20
)

// module is a plugin's module and where it comes from.
type module struct {
	name     string // as the user wrote it
	path     string // of the file; "" for one that is built in
	code     []byte
	manifest []byte // beside it, where there is one
	fixtures string // the folder that has them in testdata; "" for none
}

// openModule reads a module: a file, or builtin:NAME.
func openModule(arg string) (*module, error) {
	if name, ok := strings.CutPrefix(arg, builtinPrefix); ok {
		code, err := plugins.Module(name)
		return &module{name: arg, code: code}, err
	}
	code, err := readBounded(arg, maxPluginFile)
	if err != nil {
		return nil, err
	}
	m := &module{name: arg, path: arg, code: code, fixtures: filepath.Dir(arg)}
	m.manifest, err = readBounded(sidecarOf(arg), maxPluginFile)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return m, err
}

// sidecarOf is where the manifest of a module may lie.
func sidecarOf(path string) string { return strings.TrimSuffix(path, ".wasm") + ".manifest.json" }

// readBounded reads a file that is one, and not a device or a pipe.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // reading only
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %s", path, bytesText(most))
	}
	return b, err
}

// moduleOrBuild reads the module that arg names, or builds the folder that it names.
func moduleOrBuild(ctx context.Context, arg string, stderr io.Writer) (*module, error) {
	if strings.HasPrefix(arg, builtinPrefix) || !isFolder(arg) {
		return openModule(arg)
	}
	b, err := buildFolder(ctx, arg, "", stderr)
	if err != nil {
		return nil, err
	}
	return &module{name: arg, path: b.Path, code: b.code, fixtures: arg}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// guests runs a module in the gateway's own host, with all that it wants granted. It is not safe
// for concurrent use.
type guests struct {
	module   *module
	manifest *wasm.Manifest
	text     []byte // of the manifest
	cache    *wasm.Cache
	dir      string
	open     []*wasm.Plugin
	log      io.Writer // nil: nowhere
}

// newGuests admits a module. close has to be called.
func newGuests(m *module, log io.Writer) (g *guests, err error) {
	s := wasm.Inspect(wasm.Options{Name: "plugin", Module: m.code, Manifest: m.manifest})
	if s.Refused != nil {
		return nil, why(s.Refused)
	}
	g = &guests{module: m, manifest: s.Manifest, text: m.manifest, log: log}
	if g.text == nil {
		if g.text, err = wasm.ManifestText(m.code); err != nil {
			return nil, err
		}
	}
	if g.dir, err = os.MkdirTemp("", "interlock-plugin-"); err != nil {
		return nil, err
	}
	if g.cache, err = wasm.NewCache(filepath.Join(g.dir, "cache")); err != nil {
		_ = os.RemoveAll(g.dir)
		return nil, err
	}
	return g, nil
}

func (g *guests) close() {
	for _, p := range g.open {
		_ = p.Close(context.Background())
	}
	_ = os.RemoveAll(g.dir)
}

// load starts the plugin with a configuration. It stays until close.
func (g *guests) load(config []byte) (*wasm.Plugin, error) {
	p, err := wasm.Load(context.Background(), wasm.Options{
		Name: g.manifest.Name, Module: g.module.code, Manifest: g.module.manifest, Config: config,
		Grants: g.manifest.Capabilities, Cache: g.cache, PoolSize: 1, Log: guestLog(g.log), KeepOutput: true,
	})
	if err != nil {
		return nil, withWords(err)
	}
	g.open = append(g.open, p)
	return p, nil
}

// why is the reason of a refusal, without the name of the plugin: there is only one.
func why(err error) error {
	if refused, ok := errors.AsType[*wasm.LoadError](err); ok {
		return &refusal{refused}
	}
	return err
}

// refusal is a *wasm.LoadError without the name of the plugin.
type refusal struct{ *wasm.LoadError }

func (r *refusal) Error() string { return r.Detail() }

// withWords adds to a failure what the guest wrote before it, such as the words of a panic: as much of
// it as the host keeps, without what looks like a credential.
func withWords(err error) error {
	f, ok := errors.AsType[*wasm.Failure](err)
	if !ok || f.Said == "" {
		return err
	}
	lines := strings.Split(f.Said, "\n")
	for i := range lines {
		lines[i] = openai.Redact(lines[i])
	}
	return fmt.Errorf("%w; it wrote:\n%s", err, strings.Join(lines, "\n"))
}

// plugin is the module as the conformance kit wants it.
func (g *guests) plugin() conformance.Plugin {
	return conformance.Plugin{Manifest: g.text, Open: func(config []byte) (conformance.Caller, error) {
		p, err := g.load(config)
		var guest *wasm.GuestError
		var refused *wasm.LoadError
		switch {
		case errors.As(err, &guest):
			return nil, &interlock.Error{Code: guest.Code, Message: guest.Message, Param: guest.Param}
		case errors.As(err, &refused) && refused.Step == wasm.StepConfig:
			return nil, interlock.Config(refused.Err.Error())
		case err != nil:
			return nil, err
		}
		return caller{p}, nil
	}}
}

// caller hands the kit's calls to the host.
type caller struct{ p *wasm.Plugin }

func (c caller) Call(op uint32, in, dst []byte) (out []byte, failed bool, err error) {
	out, err = c.p.Call(wasm.Wait{}, wasm.Op(op), in, dst)
	var guest *wasm.GuestError
	if !errors.As(err, &guest) {
		return out, false, withWords(err)
	}
	w := interlock.Writer(dst)
	w.Str(guest.Code)
	w.Str(guest.Message)
	w.Str(guest.Param)
	w.U32(uint32(guest.Status))
	return w, true, nil
}

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
