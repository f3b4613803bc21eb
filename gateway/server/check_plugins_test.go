package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/plugins"
)

// What a start would go on without, check says beforehand, and nothing of what is configured.
func TestCheckLooksAtPlugins(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceDetector { // ten times slower to compile
		t.Skip("it builds a guest with the Go toolchain")
	}
	dir := t.TempDir()
	module, err := watchman()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "watchman.wasm"), module, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "odd.wasm"), []byte("not wasm"), 0o600))
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
plugins:
  - {name: gone, source: "file:gone.wasm"}
  - {name: odd, source: "file:odd.wasm"}
  - {name: pinned, source: "file:watchman.wasm", sha256: "0000000000000000000000000000000000000000000000000000000000000000"}
  - {name: watchman, source: "file:watchman.wasm"}
  - {name: nobody, source: "builtin:nobody"}
  - {name: told, source: "file:watchman.wasm", config: {refuse: "canary-1234567"}}
providers:
  a: {adapter: "plugin:watchman", base_url: "http://127.0.0.1:1"}
  b: {adapter: "native:nobody", base_url: "http://127.0.0.1:1"}
groups: [{name: all, channels: [{name: one, provider: a, credential: sk-1, models: {m: }}, {name: two, provider: b, credential: sk-2, models: {m: }}]}]
keys: [{name: caller, key: ilk-check-0123456789, groups: [all], guards: [{plugin: watchman, on: [request]}]}]
`), 0o600))
	_, r := catalog.Load(path, config.Env{})
	require.NoError(t, r.Err())
	found := map[string]string{}
	Check(context.Background(), r.Config, CheckOptions{}, func(key, message string) { found[key] = message })
	require.Contains(t, found["plugins[0].source"], "no such file")
	require.Contains(t, found["plugins[1].source"], "not a Wasm module")
	require.Contains(t, found["plugins[2].sha256"], "sha256")
	require.NotContains(t, found, "plugins[3].source")
	require.Contains(t, found["plugins[4].source"], strings.Join(plugins.Names(), ", "))
	require.Contains(t, found["providers.a.adapter"], "is a guard, not an adapter")
	require.Contains(t, found["providers.b.adapter"], "native:anthropic")
	require.Contains(t, found["plugins[5].config"], "configure: config: it says [redacted]")
	require.Len(t, found, 7)
	require.NotContains(t, fmt.Sprint(found), "canary")
}

// A pipe that nobody writes to must not hold up a start, a reload or a check.
func TestPipesAreNoPlugins(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.wasm")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip("no pipes here: ", err)
	}
	_, err := readModule(pipe)
	require.ErrorContains(t, err, "is not a file")
	_, err = readModule("/dev/zero")
	require.ErrorContains(t, err, "is not a file")
}

func TestWaysToPresentACredential(t *testing.T) {
	t.Parallel()
	known := []string{"header:x-api-key", "aws_sigv4"}
	for _, a := range []config.Auth{{Kind: config.AuthHeader, Name: "x-api-key"}, {Kind: config.AuthAWS}, {Kind: config.AuthNone}} {
		require.True(t, presents(known, a), a.String())
	}
	for _, a := range []config.Auth{{Kind: config.AuthHeader, Name: "x-other"}, {Kind: config.AuthBearer}} {
		require.False(t, presents(known, a), a.String())
		require.True(t, presents(nil, a))
	}
}
