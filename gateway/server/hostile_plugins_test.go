package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// misdeeds are what testdata/hostile does when it is told to, and where it shows: in a whole
// answer, in a stream, or in both. The provider is asked where the request was shaped before.
var misdeeds = []struct {
	does          string
	whole, stream bool
	asked         bool
}{
	{"trap in request", true, true, false},
	{"loop in request", true, false, false},
	{"recurse in request", true, false, false},
	{"hoard in request", true, false, false},
	{"no JSON in request", true, true, false},
	{"header injection", true, true, false},
	{"header undeclared", true, false, false},
	{"another host", true, false, false},
	{"another scheme", true, false, false},
	{"a step up", true, false, false},
	{"a line in the path", true, true, false},
	{"trap in response", true, false, true},
	{"no JSON in response", true, false, true},
	{"too much in response", true, false, true},
	{"trap in events", false, true, true},
	{"loop in events", false, true, true},
	{"a line in events", false, true, true},
	{"a line in a name", false, true, true},
	{"large state in events", false, true, true},
}

// hostileModule builds the guest in testdata/hostile into dir.
func hostileModule(t *testing.T, dir string) string {
	t.Helper()
	if testing.Short() || raceDetector { // ten times slower to compile
		t.Skip("it builds a guest with the Go toolchain")
	}
	file := filepath.Join(dir, "hostile.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/hostile")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	module, err := os.ReadFile(file)
	require.NoError(t, err)
	manifest, err := os.ReadFile("testdata/hostile/manifest.json")
	require.NoError(t, err)
	module, err = wasm.WriteManifest(module, manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, module, 0o600))
	return file
}

// hostileConfig has a model for each plugin, which its channel serves first and channel good next.
func hostileConfig(sections map[string]string) string {
	var list, providers, bad, good strings.Builder
	for _, name := range sortedKeys(sections) {
		fmt.Fprintf(&list, "  - {name: %s, %s}\n", name, sections[name])
		fmt.Fprintf(&providers, "  %s: {adapter: \"plugin:%s\", base_url: \"{{url a}}/v1\"}\n", name, name)
		fmt.Fprintf(&bad, "      - {name: %s, provider: %s, credential: sk-AAAA-canary-0001, priority: 1, models: {%s: {}}}\n", name, name, name)
		fmt.Fprintf(&good, "%s: {}, ", name)
	}
	return "plugins:\n" + list.String() + "providers:\n  good: {adapter: openai, base_url: \"{{url b}}/v1\"}\n" + providers.String() +
		"groups:\n  - name: all\n    channels:\n" + bad.String() +
		"      - {name: good, provider: good, credential: sk-BBBB-canary-0002, priority: 2, models: {" + good.String() + "m: {}}}\n" +
		"keys:\n  - {name: k, key: \"{{key}}\", groups: [all]}\n" +
		"breaker: {consecutive_failures: 0, failure_ratio: 0}\n"
}

func chatOf(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
}

// Whatever a plugin does, its attempt ends as a failure of its channel, another channel answers,
// and nothing forged reaches the caller or a provider.
func TestAHostilePluginHurtsItsChannelAlone(t *testing.T) {
	t.Parallel()
	module := hostileModule(t, t.TempDir())
	sections := map[string]string{}
	name := func(does string) string { return strings.ReplaceAll(strings.ToLower(does), " ", "-") }
	for _, m := range misdeeds {
		sections[name(m.does)] = fmt.Sprintf("source: \"file:%s\", config: {does: %q}", module, m.does)
	}
	st := setUp(t, map[string]string{"a": "healthy \"from a\" usage 7 2\n", "b": "healthy \"from b\" usage 7 2\n"}, hostileConfig(sections))
	require.NotContains(t, st.operators(t, "/admin/v1/plugins"), `"disabled"`)
	for _, m := range misdeeds {
		for _, stream := range []bool{false, true} {
			if !stream && !m.whole || stream && !m.stream {
				continue
			}
			before := st.providers["a"].Count()
			began := time.Now()
			got := st.chat(chatOf(name(m.does), stream))
			require.Less(t, time.Since(began), 15*time.Second, m.does)
			require.Equal(t, 200, got.Status, "%s: %s", m.does, got.Body)
			require.Equal(t, "all/good", got.Header.Get("interlock-route"), "%s: %s", m.does, got.Body)
			require.Equal(t, "same_contract_fallback", got.Header.Get("interlock-cause"), m.does)
			require.NotContains(t, got.Body, "forged", m.does)
			r := st.record(got.ID())
			require.Len(t, r.Attempts, 2, m.does)
			require.Contains(t, []string{"malformed_answer", "server_error"}, r.Attempts[0].Class, m.does) // the latter where the clock stopped it
			require.Equal(t, "same_contract_fallback", r.Attempts[1].Cause, m.does)
			require.Equal(t, "failed", r.Attempts[0].Terminal, m.does)
			asked := 0
			if m.asked {
				asked = 1
			}
			require.Equal(t, before+asked, st.providers["a"].Count(), "%s: calls of its provider", m.does)
			other := st.chat(chatOf("m", stream))
			require.Equal(t, 200, other.Status, "another channel after %s: %s", m.does, other.Body)
		}
	}
	for _, call := range st.providers["a"].Calls() {
		require.Equal(t, "/v1/chat/completions", call.Path)
		require.Equal(t, []string{"Bearer sk-AAAA-canary-0001"}, call.Header["Authorization"])
	}
	require.Eventually(t, func() bool {
		return strings.Contains(st.logs.String(), "trap-in-request")
	}, 10*time.Second, time.Millisecond)
}

// A plugin that cannot be loaded disables the channels that use it, and says so everywhere.
func TestAPluginThatCannotBeLoadedDisablesItsChannels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		path := filepath.Join(dir, name+".wasm")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return "source: \"file:" + path + "\""
	}
	guest := func(abi int32, manifest string, change func(*wasmtest.Module)) []byte {
		m := wasmtest.Module{Pages: 2, Funcs: []wasmtest.Func{
			{Export: "interlock_abi", Results: []byte{wasmtest.I32}, Body: wasmtest.I32Const(abi)},
			{Export: "interlock_alloc", Params: []byte{wasmtest.I32}, Results: []byte{wasmtest.I32}, Body: wasmtest.I32Const(1024)},
			{Export: "interlock_call", Params: []byte{wasmtest.I32, wasmtest.I32}, Results: []byte{wasmtest.I64}, Body: wasmtest.I64Const(0)},
		}, Custom: map[string][]byte{"interlock.manifest": []byte(manifest)}}
		if change != nil {
			change(&m)
		}
		return m.Encode()
	}
	const manifest = `{"name":"x","version":"1.0.0","abi":"1.0","kind":"adapter","operations":["request","response"],"endpoints":["chat_completions"]}`
	text := "this is no module"
	refused := map[string]struct{ section, says string }{
		"no-wasm":     {file("no-wasm", []byte(text)), "Wasm"},
		"empty":       {file("empty", nil), "Wasm"},
		"absent":      {"source: \"file:" + filepath.Join(dir, "absent.wasm") + "\"", "no such file"},
		"another-abi": {file("another-abi", guest(2<<16, manifest, nil)), "version 2.0 of the ABI"},
		"future-abi":  {file("future-abi", guest(1<<16, strings.Replace(manifest, `"1.0"`, `"2.0"`, 1), nil)), "2.0"},
		"no-call":     {file("no-call", guest(1<<16, manifest, func(m *wasmtest.Module) { m.Funcs = m.Funcs[:2] })), "interlock_call"},
		"no-manifest": {file("no-manifest", guest(1<<16, manifest, func(m *wasmtest.Module) { m.Custom = nil })), "manifest"},
		"ungranted": {file("ungranted", guest(1<<16, manifest, func(m *wasmtest.Module) {
			m.Imports = []wasmtest.Import{{Module: "interlock", Name: "log", Params: []byte{wasmtest.I32, wasmtest.I32, wasmtest.I32}}}
		})), "log"},
		"strange-import": {file("strange-import", guest(1<<16, manifest, func(m *wasmtest.Module) {
			m.Imports = []wasmtest.Import{{Module: "env", Name: "system", Params: []byte{wasmtest.I32}}}
		})), "system"},
		"pinned": {file("pinned", guest(1<<16, manifest, nil)) + ", sha256: " + strings.Repeat("ab", 32), "sha256"},
	}
	sections := map[string]string{}
	for name, r := range refused {
		sections[name] = r.section
	}
	st := setUp(t, map[string]string{"a": "", "b": "healthy \"from b\" usage 7 2\n"}, hostileConfig(sections))
	var ready struct {
		Status   string
		Degraded map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(st.operators(t, "/readyz")), &ready))
	require.Equal(t, "ready", ready.Status)
	var listed struct {
		Plugins []struct{ Name, Status, Error string }
	}
	require.NoError(t, json.Unmarshal([]byte(st.operators(t, "/admin/v1/plugins")), &listed))
	require.Len(t, listed.Plugins, len(refused))
	for _, p := range listed.Plugins {
		require.Equal(t, "disabled", p.Status, p.Name)
		require.Contains(t, p.Error, refused[p.Name].says, p.Name)
		require.Equal(t, p.Error, ready.Degraded["plugin "+p.Name])
		require.Eventually(t, func() bool { // the log is written many lines at a time
			return strings.Contains(st.logs.String(), fmt.Sprintf("%q:%q", "plugin", p.Name))
		}, 10*time.Second, time.Millisecond, p.Name)
	}
	for _, name := range sortedKeys(refused) {
		got := st.chat(chatOf(name, false))
		require.Equal(t, 200, got.Status, "%s: %s", name, got.Body)
		require.Equal(t, "all/good", got.Header.Get("interlock-route"), name)
		require.Len(t, st.record(got.ID()).Attempts, 1, name)
	}
	require.Zero(t, st.providers["a"].Count())
}

// A plugin sends its provider all that it can get hold of: no credential, no environment, no file
// and no connection is among that.
func TestAPluginThatSnoopsFindsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("INTERLOCK_TEST_CANARY", "CANARYENVIRONMENT7441")
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("CANARYFILE7442"), 0o600))
	section := fmt.Sprintf("source: \"file:%s\", config: {does: snoop, reads: %q}", hostileModule(t, dir), secret)
	st := setUp(t, map[string]string{"a": "healthy \"from a\" usage 7 2\n", "b": ""}, hostileConfig(map[string]string{"snoop": section}))
	for _, stream := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got, err := st.post(ctx, "/v1/chat/completions", chatOf("snoop", stream), "x-custom", "CANARYHEADER7437", "cookie", "c=CANARYHEADER7437")
		require.NoError(t, err)
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "all/snoop", got.Header.Get("interlock-route"), "%s", st.logs)
	}
	calls := st.providers["a"].Calls()
	require.Len(t, calls, 2)
	for _, call := range calls {
		require.Equal(t, []string{"Bearer sk-AAAA-canary-0001"}, call.Header["Authorization"], "the host adds the credential")
		body := string(call.Body)
		require.Contains(t, body, `hi`, "it saw the caller's words")
		require.Contains(t, body, secret+`=\"\" true true`, "and could not read")
		require.Contains(t, body, "net=true")
		require.Contains(t, body, `args=[] env=[]`)
		for _, canary := range []string{
			"sk-AAAA-canary-0001", "sk-BBBB-canary-0002", callersKey, "CANARYENVIRONMENT7441", "CANARYFILE7442", "CANARYHEADER7437", st.providers["a"].Addr(), "root:",
		} {
			require.NotContains(t, body, canary)
		}
	}
}
