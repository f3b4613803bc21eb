// Package plugintest owns what the tests of the shipped adapters share: their modules, built from
// the sources beside it once for a process, with the manifest in them; the native build of one,
// spoken to over the plugin ABI as the host does; answers put together as a caller's SDK does;
// and the way to recordings. It is imported by tests only, knows no provider, and nothing of what
// is in built/, which may be older.
package plugintest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
)

var (
	mu    sync.Mutex
	built = map[string][]byte{}
)

// Module returns the Wasm module of a shipped adapter. It takes seconds where it is not built
// yet; the test is skipped with -short.
func Module(t testing.TB, name string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a module with the Go toolchain")
	}
	mu.Lock()
	defer mu.Unlock()
	if module := built[name]; module != nil {
		return module
	}
	module, err := build(t.TempDir(), name)
	if err != nil {
		t.Fatalf("the module of %s: %v", name, err)
	}
	built[name] = module
	return module
}

func build(dir, name string) ([]byte, error) {
	src, ok := plugins.Native(name)
	if !ok {
		return nil, fmt.Errorf("no such adapter; there are %v", plugins.Names())
	}
	_, here, _, _ := runtime.Caller(0)
	file := filepath.Join(dir, name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./"+name+"/wasm")
	cmd.Dir = filepath.Dir(filepath.Dir(here))
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, text)
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return wasm.WriteManifest(module, []byte(src.Manifest))
}

// File writes the module of a shipped adapter into dir and returns its path.
func File(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name+".wasm")
	if err := os.WriteFile(path, Module(t, name), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
