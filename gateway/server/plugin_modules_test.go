package server

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// shipped are the adapters that come with the gateway, and how their provider is shown a
// credential.
var shipped = map[string]string{
	"anthropic": "header:x-api-key", "azure": "header:api-key", "bedrock": "bearer", "gemini": "header:x-goog-api-key",
	"ollama":  "bearer",
	"cohere":  "bearer",
	"mistral": "bearer",
}

var (
	modulesMu  sync.Mutex
	modulesDir string // holds the shipped adapters' modules and their code, if a test needed them
)

// shippedModules is the folder of the shipped adapters' modules, NAME.wasm, and of their compiled
// code, cache. They are made once for all tests.
func shippedModules(t *testing.T) string {
	t.Helper()
	if testing.Short() || raceDetector { // ten times slower to compile
		t.Skip("it builds modules with the Go toolchain")
	}
	modulesMu.Lock()
	defer modulesMu.Unlock()
	if modulesDir != "" {
		return modulesDir
	}
	dir, err := os.MkdirTemp("", "interlock-modules")
	require.NoError(t, err)
	cache, err := wasm.NewCache(filepath.Join(dir, "cache"))
	require.NoError(t, err)
	for _, name := range plugins.Names() {
		require.Contains(t, shipped, name)
		plugintest.File(t, dir, name)
		p, err := wasm.Load(context.Background(), wasm.Options{Name: name, Module: plugintest.Module(t, name), Cache: cache})
		require.NoError(t, err)
		require.NoError(t, p.Close(context.Background()))
	}
	modulesDir = dir
	return dir
}

// seed gives a gateway the compiled code of the shipped adapters, so that it starts at once.
func seed(t *testing.T, dataDir string) {
	t.Helper()
	from := filepath.Join(shippedModules(t), "cache")
	to := filepath.Join(dataDir, "plugins", "cache")
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		return os.Link(path, at)
	}))
}

// shippedPlugins is the section of a configuration that names shipped adapters.
func shippedPlugins(t *testing.T, names ...string) string {
	dir := shippedModules(t)
	var b strings.Builder
	b.WriteString("plugins:\n")
	for _, name := range names {
		b.WriteString("  - {name: " + name + ", source: \"file:" + filepath.Join(dir, name+".wasm") + "\"}\n")
	}
	return b.String()
}
