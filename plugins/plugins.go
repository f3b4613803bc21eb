// Package plugins owns the adapters that come with the gateway: their Wasm modules, which
// `make plugins` builds into built/ and which are embedded from there, and the native builds of
// the same sources. A build without the modules works too: builtin:NAME then says what to run.
//
// It runs nothing and knows nothing of the gateway.
package plugins

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

//go:embed all:built
var built embed.FS

// Source is a plugin's source, built natively.
type Source struct {
	Manifest string // JSON
	New      interlock.Maker
}

// Native returns the native build of a shipped adapter.
func Native(name string) (Source, bool) {
	s, ok := natives[name]
	return s, ok
}

// Names lists the shipped adapters, sorted.
func Names() []string { return slices.Sorted(maps.Keys(natives)) }

// Built lists the shipped adapters whose modules are in this binary.
func Built() (list []string) {
	for _, name := range Names() {
		if _, err := fs.Stat(built, "built/"+name+".wasm"); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// Module returns the Wasm module of a shipped adapter. The error says what to do.
func Module(name string) ([]byte, error) {
	if _, ok := natives[name]; !ok {
		return nil, fmt.Errorf("there is no adapter %q among those that come with the gateway: %s", name, strings.Join(Names(), ", "))
	}
	module, err := built.ReadFile("built/" + name + ".wasm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this binary was built without the adapter's module: run `make plugins` and build again, or use adapter: native:%s", name)
	}
	return module, err
}
