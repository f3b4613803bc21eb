package server

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm"
)

// watchman is the module of testdata/watchman, built once for all tests.
var watchman = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "watchman")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "watchman.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/watchman")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(string(text))
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile("testdata/watchman/main.go")
	if err != nil {
		return nil, err
	}
	_, manifest, _ := strings.Cut(string(source), "Manifest = `")
	manifest, _, _ = strings.Cut(manifest, "`")
	return wasm.WriteManifest(module, []byte(manifest))
})

func guardedStand(t *testing.T, script, onError string) *stand {
	t.Helper()
	if testing.Short() || raceDetector && onError == "closed" { // one of them is enough there: it is slow to compile
		t.Skip("it builds a guest with the Go toolchain")
	}
	module, err := watchman()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "watchman.wasm")
	require.NoError(t, os.WriteFile(file, module, 0o600))
	guard := `[{plugin: watchman, on: [request, response, events], on_error: ` + onError + `}]`
	return setUp(t, map[string]string{"a": script, "b": "healthy \"from b\"\n"}, `
plugins: [{name: watchman, source: "file:`+file+`", limits: {call_timeout: 200ms}}]
providers: {a: {adapter: openai, base_url: "{{url a}}"}, b: {adapter: openai, base_url: "{{url b}}"}}
groups: [{name: all, channels: [{name: one, provider: a, credential: sk-upstream-1, models: {m: , m2: }, priority: 1}, {name: two, provider: b, credential: sk-upstream-2, models: {m: , m2: }, priority: 2}]}]
keys:
  - {name: caller, key: "{{key}}", groups: [all], labels: {team: web}, guards: `+guard+`}
  - {name: free, key: ilk-free-0123456789, groups: [all]}
aliases:
  watched: {model: m, guards: `+guard+`}
`)
}

const saying = `{"model":"m","messages":[{"role":"user","content":"`

func guardDecisions(r *record) (all []string) {
	for _, d := range r.Decisions {
		if d.Point == "guard" {
			all = append(all, string(d.Input)+" "+string(d.Output))
		}
	}
	return all
}

func TestGuardsOfRequests(t *testing.T) {
	t.Parallel()
	st := guardedStand(t, "healthy \"fine\"\n", "closed")
	lastBody := func() string {
		calls := st.providers["a"].Calls()
		return string(calls[len(calls)-1].Body)
	}

	a := st.chat(saying + `my number-123"}]}`)
	require.Equal(t, 200, a.Status, a.Body)
	require.NotEmpty(t, st.providers["a"].Calls(), a.Body+st.logs.String())
	require.Contains(t, lastBody(), "my [redacted]")
	require.Equal(t, []string{`{"on":"request","plugin":"watchman"} {"action":"rewrite"}`}, guardDecisions(st.record(a.ID())))

	before := len(st.providers["a"].Calls())
	a = st.chat(saying + `forbidden"}]}`)
	require.Equal(t, 403, a.Status)
	require.Equal(t, "policy_denied", a.errorCode())
	require.Contains(t, a.Body, `not for caller {\"team\":\"web\"}`)
	r := st.record(a.ID())
	require.Equal(t, "policy_stop", r.Terminal)
	require.Empty(t, r.Attempts)
	require.Equal(t, []string{`{"on":"request","plugin":"watchman"} {"action":"refuse","reason":"forbidden_word"}`}, guardDecisions(r))

	for _, what := range []string{"trap", "spin", "othermodel"} {
		a = st.chat(saying + what + `"}]}`)
		require.Equal(t, 503, a.Status, what)
		require.Equal(t, "policy_unavailable", a.errorCode(), what)
	}
	require.Len(t, st.providers["a"].Calls(), before, "nothing was sent")

	a = st.chat(saying+`forbidden"}]}`, "Authorization", "Bearer ilk-free-0123456789")
	require.Equal(t, 200, a.Status, "a key without guards")
	a = st.chat(strings.Replace(saying, `"m"`, `"watched"`, 1)+`forbidden"}]}`, "Authorization", "Bearer ilk-free-0123456789")
	require.Equal(t, 403, a.Status, "an alias with guards")
	require.Contains(t, a.Body, "not for free {} watched")
}

func TestGuardsThatFailOpen(t *testing.T) {
	t.Parallel()
	st := guardedStand(t, "healthy \"fine\"\n", "open")
	a := st.chat(saying + `trap"}]}`)
	require.Equal(t, 200, a.Status, a.Body)
	require.Equal(t, []string{`{"on":"request","plugin":"watchman"} {"action":"failed_open"}`}, guardDecisions(st.record(a.ID())))
}

func TestGuardsOfAnswers(t *testing.T) {
	t.Parallel()
	st := guardedStand(t, `on chat body contains "bad"
  answer "a forbidden word"
on chat
  answer "the number-123 of it"
`, "closed")
	a := st.chat(saying + `x"}]}`)
	require.Equal(t, 200, a.Status, a.Body)
	require.Contains(t, a.Body, "the [redacted] of it")
	require.NotContains(t, a.Body, "number-123")

	a = st.chat(saying + `bad"}]}`)
	require.Equal(t, 403, a.Status, a.Body)
	require.Equal(t, "policy_denied", a.errorCode())
	r := st.record(a.ID())
	require.Equal(t, "policy_stop", r.Terminal)
	require.Len(t, r.Attempts, 1, "never another route")
	require.Equal(t, "gateway_denied", r.Attempts[0].Class)
	require.Equal(t, "closed", r.Attempts[0].Circuit)
	require.Empty(t, st.providers["b"].Calls())
	for range 20 { // never health-relevant
		require.Equal(t, 403, st.chat(saying+`bad"}]}`).Status)
	}
	require.Equal(t, 200, st.chat(saying+`x"}]}`).Status)
	require.Empty(t, st.providers["b"].Calls())
}

func TestGuardsOfEvents(t *testing.T) {
	t.Parallel()
	st := guardedStand(t, `on chat body contains "late"
  role
  tokens "one two three "
  tokens "a forbidden word"
  finish stop
on chat body contains "early"
  role
  tokens "forbidden"
  finish stop
on chat
  answer "number-123 is it"
`, "closed")
	stream := func(what string) *answer {
		return st.chat(saying + what + `"}],"stream":true}`)
	}
	a := stream("x")
	require.Equal(t, 200, a.Status, a.Body)
	require.Contains(t, a.Body, "[redacted]")
	require.NotContains(t, a.Body, "number-123")
	require.True(t, strings.HasSuffix(a.Body, "data: [DONE]\n\n"), a.Body)
	require.Contains(t, a.Body, `"finish_reason":"stop"`)

	a = stream("early")
	require.Equal(t, 403, a.Status, a.Body)
	require.Equal(t, "policy_denied", a.errorCode())
	require.Equal(t, "gateway_denied", st.record(a.ID()).Attempts[0].Class)

	a = stream("late")
	require.Equal(t, 200, a.Status, a.Body)
	require.Contains(t, a.Body, `"role":"assistant"`)
	require.NotContains(t, a.Body, "forbidden")
	require.NotContains(t, a.Body, "[DONE]")
	events := strings.Split(strings.TrimSpace(a.Body), "\n\n")
	var last struct{ Error struct{ Code string } }
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(events[len(events)-1], "data: ")), &last))
	require.Equal(t, "guard_refused", last.Error.Code)
	r := st.record(a.ID())
	require.Equal(t, "partial", r.Terminal)
	require.Len(t, r.Attempts, 1)
	require.Empty(t, st.providers["b"].Calls())
}

// A guard whose plugin cannot be loaded refuses what it should have seen, and says so.
func TestGuardWithoutItsPlugin(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "healthy \"fine\"\n"}, `
plugins: [{name: gone, source: "file:{{dir}}/gone.wasm"}]
providers: {a: {adapter: openai, base_url: "{{url a}}"}}
groups: [{name: all, channels: [{name: one, provider: a, credential: sk-upstream-1, models: {m: }}]}]
keys: [{name: caller, key: "{{key}}", groups: [all], guards: [{plugin: gone, on: [request]}]}]
`)
	a := st.chat(saying + `x"}]}`)
	require.Equal(t, 503, a.Status)
	require.Equal(t, "policy_unavailable", a.errorCode())
	require.Contains(t, st.condition().Degraded, "plugin gone")
	require.Eventually(t, func() bool { return strings.Contains(st.logs.String(), "plugin cannot be loaded") }, 5*time.Second, time.Millisecond)
}
