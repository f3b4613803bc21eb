package server

import (
	"context"
	enc "encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	w "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// plainModule is a module that comes up, says what it is, and answers everything else with
// nothing. version makes it another one.
func plainModule(kind, version, more string) []byte {
	does := `"operations":["request","response","events","classify"],"endpoints":["chat_completions"],"auth":["header:x-plain-key"]`
	if kind == "guard" {
		does = `"operations":["guard_request"]`
	}
	manifest := fmt.Sprintf(`{"name":"plain","version":%q,"abi":"1.0","kind":%q,%s%s}`, version, kind, does, more)
	described := append(enc.LittleEndian.AppendUint32(nil, uint32(len(manifest))), manifest...)
	m := w.Module{
		Pages: 4, Data: described, DataAt: 1024,
		Funcs: []w.Func{
			{Export: "interlock_abi", Results: []byte{w.I32}, Body: w.I32Const(1 << 16)},
			{Export: "interlock_alloc", Params: []byte{w.I32}, Results: []byte{w.I32}, Body: w.I32Const(64 << 10)},
			{Export: "interlock_call", Params: []byte{w.I32, w.I32}, Results: []byte{w.I64}, Body: w.Code(
				w.Get(0), w.I32Const(5), 0x46, w.If(w.I64Const(1024<<32|int64(len(described))), w.Return), w.I64Const(0))},
		},
		Custom: map[string][]byte{"interlock.manifest": []byte(manifest)},
	}
	return m.Encode()
}

// reloadAnswer is what the admin API answers to a reload.
type reloadAnswer struct {
	Generation     uint64
	RefusedPlugins []struct {
		Name, Source, Error string
		Kept                *struct{ Version, SHA256 string }
		Channels, Guards    []string
	} `json:"refused_plugins"`
}

func (st *stand) reloadByHand() (a reloadAnswer) {
	st.t.Helper()
	resp, err := st.client.Post("http://"+st.AdminAddr().String()+"/admin/v1/reload", "", nil)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	require.Equal(st.t, http.StatusOK, resp.StatusCode)
	require.NoError(st.t, json.NewDecoder(resp.Body).Decode(&a))
	return a
}

const plainConfig = `
plugins:
  - {name: shape, source: "file:{{dir}}/shape.wasm"}
  - {name: look, source: "file:{{dir}}/look.wasm"}
providers: {s: {adapter: "plugin:shape", base_url: "{{url a}}", auth: "header:x-plain-key"}, o: {adapter: openai, base_url: "{{url a}}"}}
groups:
  - {name: first, channels: [{name: one, provider: s, credential: sk-upstream-1, models: {m: }}, {name: two, provider: o, credential: sk-upstream-2, models: {m: }}]}
  - {name: second, channels: [{name: three, provider: s, credential: sk-upstream-3, models: {m: }}]}
keys: [{name: caller, key: "{{key}}", groups: [first], guards: [{plugin: look, on: [request], on_error: open}]}]
aliases: {seen: {model: m, guards: [{plugin: look, on: [request], on_error: open}]}}
`

func writeModule(t *testing.T, dir, name string, module []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), module, 0o600))
}

// The answer to a reload names each plugin that was refused, why, what goes on in its place, and
// whom that concerns.
func TestAReloadNamesThePluginsThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeModule(t, dir, "shape.wasm", plainModule("adapter", "1.0.0", ""))
	writeModule(t, dir, "look.wasm", []byte("no module"))
	st := setUpIn(t, dir, map[string]string{"a": "healthy \"fine\"\n"}, "watch: false\n"+plainConfig)
	a := st.reloadByHand()
	require.Equal(t, st.Gateway().Generation().Number, a.Generation)
	require.Len(t, a.RefusedPlugins, 1)
	look := a.RefusedPlugins[0]
	require.Equal(t, "look", look.Name)
	require.Equal(t, "module: this is not a Wasm module", look.Error, "without the name, which stands beside it")
	require.Nil(t, look.Kept)
	require.Empty(t, look.Channels)
	require.Equal(t, []string{"key/caller", "alias/seen"}, look.Guards)

	before := digestOf(plainModule("adapter", "1.0.0", ""))
	writeModule(t, dir, "shape.wasm", plainModule("adapter", "1.0.1", "")[:200])
	writeModule(t, dir, "look.wasm", plainModule("guard", "1.0.0", ""))
	a = st.reloadByHand()
	require.Len(t, a.RefusedPlugins, 1)
	shape := a.RefusedPlugins[0]
	require.Equal(t, "shape", shape.Name)
	require.Equal(t, &struct{ Version, SHA256 string }{"1.0.0", before}, shape.Kept)
	require.Equal(t, []string{"first/one", "second/three"}, shape.Channels)
	require.Empty(t, shape.Guards)

	writeModule(t, dir, "shape.wasm", plainModule("adapter", "1.0.1", ""))
	require.Empty(t, st.reloadByHand().RefusedPlugins)
}

// One change of a plugin's file is one generation and one activation, whoever sees it first: the
// operator who reloads, or the watcher.
func TestOneChangeIsOneGeneration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeModule(t, dir, "shape.wasm", plainModule("adapter", "1.0.0", ""))
	writeModule(t, dir, "look.wasm", plainModule("guard", "1.0.0", ""))
	st := setUpIn(t, dir, map[string]string{"a": "healthy \"fine\"\n"}, plainConfig)
	number := st.Gateway().Generation().Number
	activations := func() int { return strings.Count(st.logs.String(), `"msg":"plugin loaded","plugin":"shape"`) }
	for i := range 5 {
		writeModule(t, dir, "shape.wasm", plainModule("adapter", fmt.Sprintf("1.1.%d", i), ""))
		number++
		require.Equal(t, number, st.reloadByHand().Generation)
	}
	// Another change, which nobody reloads by hand: when the watcher has brought it, it has also
	// seen all before it.
	writeModule(t, dir, "shape.wasm", plainModule("adapter", "1.2.0", ""))
	number++
	require.Eventually(t, func() bool { return st.plugins.status()[1].Version == "1.2.0" }, 20*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return st.Gateway().Generation().Number >= number }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, number, st.Gateway().Generation().Number)
	require.Eventually(t, func() bool { return activations() >= 7 }, 10*time.Second, time.Millisecond) // the log is written many lines at a time
	st.end()
	require.Equal(t, 7, activations())
}

// What is wrong with a plugin's entry is said at the key that it is about.
func TestCheckNamesThePluginsKeyThatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schema := `,"config_schema":{"type":"object","additionalProperties":false,"required":["word"],"properties":{"word":{"type":"string","pattern":"^[a-z]*$"},"list":{"type":"array","items":{"type":"integer"}},"deep":{"type":"object","properties":{"n":{"type":"integer"}}}}}`
	writeModule(t, dir, "schema.wasm", plainModule("guard", "1.0.0", schema))
	writeModule(t, dir, "wants.wasm", plainModule("guard", "1.0.0", `,"capabilities":["log"]`))
	writeModule(t, dir, "adapter.wasm", plainModule("adapter", "1.0.0", ""))
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
plugins:
  - name: many
    source: "file:schema.wasm"
    config:
      word: CANARY-1234567
      list: [1, "two", 3]
      deep: {n: x}
      other: 1
  - {name: none, source: "file:schema.wasm"}
  - {name: grants, source: "file:schema.wasm", grants: [log, fetch], config: {word: a}}
  - {name: wants, source: "file:wants.wasm"}
  - {name: pinned, source: "file:schema.wasm", sha256: "0000000000000000000000000000000000000000000000000000000000000000", config: {word: a}}
  - {name: small, source: "file:schema.wasm", limits: {memory: 128KiB}, config: {word: a}}
  - {name: gone, source: "file:gone.wasm"}
  - {name: fine, source: "file:schema.wasm", config: {word: a, list: [1], deep: {n: 1}}}
  - {name: shape, source: "file:adapter.wasm"}
providers:
  left: {adapter: "plugin:shape", base_url: "http://127.0.0.1:1"}
  odd: {adapter: "plugin:shape", base_url: "http://127.0.0.1:1", auth: "header:x-other"}
  good: {adapter: "plugin:shape", base_url: "http://127.0.0.1:1", auth: "header:x-plain-key"}
  shipped: {adapter: "native:gemini", base_url: "http://127.0.0.1:1"}
groups: [{name: all, channels: [{name: one, provider: good, credential: sk-1, models: {m: }}]}]
keys: [{name: caller, key: ilk-check-0123456789, groups: [all]}]
`), 0o600))
	_, r := catalog.Load(path, config.Env{})
	require.NoError(t, r.Err())
	found, warned := map[string]string{}, map[string]string{}
	note := func(to map[string]string) Found {
		return func(key, message string) {
			require.NotContains(t, to, key, message)
			require.NotContains(t, message, "\n")
			to[key] = message
		}
	}
	Check(context.Background(), r.Config, CheckOptions{}, note(found))
	CheckAuth(r.Config, r.Has, note(found), note(warned))
	for key, says := range map[string]string{
		"plugins[0].config.word":    "does not match pattern",
		"plugins[0].config.list[1]": "got string, want integer",
		"plugins[0].config.deep.n":  "got string, want integer",
		"plugins[0].config.other":   "no such key",
		"plugins[1].config":         "missing property 'word'",
		"plugins[2].grants[1]":      `"fetch" is not a capability: there is log`,
		"plugins[3].grants":         "wants the capability log",
		"plugins[4].sha256":         "its sha256 is",
		"plugins[5].limits.memory":  "a memory of 4 pages at the start, at most 2",
		"plugins[6].source":         "no such file",
		"providers.left.auth":       "the default bearer is not what the adapter plugin:shape knows: header:x-plain-key",
		"providers.shipped.auth":    "header:x-goog-api-key",
	} {
		require.Contains(t, found[key], says, key)
		delete(found, key)
	}
	require.Empty(t, found)
	require.Len(t, warned, 1)
	require.Contains(t, warned["providers.odd.auth"], "knows header:x-plain-key, not header:x-other")
	r.Fail("plugins[0].config.deep.n", "x")
	require.Equal(t, [2]int{8, 14}, [2]int{r.Errors[0].Line, r.Errors[0].Column}, "it is placed where it stands")
}

// A secret of a plugin's configuration is hidden once, also where one is a part of another, or of
// what stands for it.
func TestRedactedConfigurationOfAPlugin(t *testing.T) {
	t.Parallel()
	doc := config.Document{JSON: `{"a": "canary", "b": ["canary-1234567"], "c": {"d": "redacted", "e": "short"}}`}
	require.Equal(t, "[redacted] [redacted] [redacted] redacted short",
		redactedText("canary-1234567 [redacted] canary redacted short", doc))
}

// Many entries of one module are compiled once, and a fault of the start that has nothing to do
// with plugins is said before any is.
func TestEntriesOfOneModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeModule(t, dir, "plain.wasm", plainModule("guard", "1.0.0", ""))
	var b strings.Builder
	b.WriteString("plugins:\n")
	for i := range 85 {
		fmt.Fprintf(&b, "  - {name: p%d, source: \"file:{{dir}}/plain.wasm\", config: {n: %d}}\n", i, i)
	}
	yaml := b.String() + `
providers: {o: {adapter: openai, base_url: "{{url a}}"}}
groups: [{name: all, channels: [{name: one, provider: o, credential: sk-upstream-1, models: {m: }}]}]
keys: [{name: caller, key: "{{key}}", groups: [all]}]
`
	st := setUpIn(t, dir, map[string]string{"a": "healthy \"fine\"\n"}, yaml)
	require.Empty(t, st.condition().Degraded)
	list, err := filepath.Glob(filepath.Join(dir, "data", "plugins", "cache", "*-m*"))
	require.NoError(t, err)
	require.Len(t, list, 1)

	other := t.TempDir()
	writeModule(t, other, "plain.wasm", plainModule("guard", "1.0.0", ""))
	for _, name := range []string{"cert.pem", "key.pem"} {
		writeModule(t, other, name, []byte("no certificate"))
	}
	st.dir, st.path = other, filepath.Join(other, "interlock.yaml")
	st.configure("listen: {address: 127.0.0.1:0, tls: {cert_file: cert.pem, key_file: key.pem}}\n" + yaml)
	_, err = New(t.Context(), Options{Path: st.path})
	require.ErrorContains(t, err, "cert")
	list, err = filepath.Glob(filepath.Join(other, "data", "plugins", "cache", "*"))
	require.NoError(t, err)
	require.Empty(t, list, "nothing was compiled for a start that fails")
}
