package server

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// switchable has something of every kind that a switch can name. Provider f never answers.
const switchable = `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
  f: {adapter: openai, base_url: "{{url f}}/v1"}
models:
  m: {context_window: 8192, modalities: [text], capabilities: [streaming], price: {input: 1, output: 1}}
  t: {context_window: 8192, modalities: [text], capabilities: [streaming], price: {input: 1, output: 1}}
budgets:
  interactive: {backoff: {base: 1ms, max: 2ms}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
retry_budget: {ratio: 1, min: 1000}
groups:
  - name: first
    channels:
      - {name: a, provider: a, account: acme, credential: sk-a-0001, models: {m: {}}}
  - name: second
    channels:
      - {name: b, provider: b, credential: sk-b-0001, models: {m: {}}}
  - name: sick
    channels:
      - {name: f, provider: f, credential: sk-f-0001, priority: 1, models: {s: {}, t: {}}}
      - {name: g, provider: b, credential: sk-g-0001, priority: 2, models: {s: {}}}
aliases:
  agent: {model: m}
  helper: {model: t, cross_model_fallback_allowed: true, substitutes: [{model: m}]}
keys:
  - {name: k, key: "{{key}}", groups: [first, second, sick]}
`

// kills are the switches, each with what a request comes to before and after.
var kills = []struct{ path, model, before, after string }{
	{"channel/first/a", "m", "200 initial first/a 1", "200 initial second/b 1"},
	{"group/first", "m", "200 initial first/a 1", "200 initial second/b 1"},
	{"provider/a", "m", "200 initial first/a 1", "200 initial second/b 1"},
	{"account/acme", "m", "200 initial first/a 1", "200 initial second/b 1"},
	{"model/m", "m", "200 initial first/a 1", "503 no_eligible_route 0"},
	{"alias/agent", "agent", "200 initial first/a 1", "503 no_eligible_route 0"},
	{"action/same_route_retry", "s", "200 same_contract_fallback sick/g 3", "200 same_contract_fallback sick/g 2"},
	{"action/same_contract_fallback", "s", "200 same_contract_fallback sick/g 3", "502 routes_exhausted 2"},
	{"action/model_substitution", "helper", "200 model_substitution first/a 3", "502 routes_exhausted 2"},
	{"alias-action/helper/model_substitution", "helper", "200 model_substitution first/a 3", "502 routes_exhausted 2"},
}

// outcome is what a request came to: status, then the cause and the route that answered or the
// error's code, then the attempts.
func (st *stand) outcome(model string) string {
	st.t.Helper()
	a := st.chat(`{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`)
	if a.Status != 200 {
		return fmt.Sprint(a.Status, " ", a.errorCode(), " ", a.Header.Get("interlock-attempts"))
	}
	return fmt.Sprint(a.Status, " ", a.Header.Get("interlock-cause"), " ", a.Header.Get("interlock-route"), " ", a.Header.Get("interlock-attempts"))
}

// TestSwitchesUnderTraffic sets every kind of switch through the operators' API while requests
// run: from its answer on no request uses what it names, after a restart neither, and once it is
// cleared everything is as before.
func TestSwitchesUnderTraffic(t *testing.T) {
	t.Parallel()
	for _, k := range kills {
		t.Run(k.path, func(t *testing.T) {
			t.Parallel()
			st := setUp(t, map[string]string{"a": "", "b": "", "f": "on chat\n  cut reset\n"}, switchable)
			path := "/admin/v1/switches/" + k.path
			var set atomic.Bool
			var before, after atomic.Int32
			var callers sync.WaitGroup
			stop := make(chan struct{})
			for range 3 {
				callers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						off := set.Load()
						switch got := st.outcome(k.model); {
						case off:
							assert.Equal(t, k.after, got)
							after.Add(1)
						case got == k.before:
							before.Add(1)
						default: // it ran while the switch was set
							assert.Equal(t, k.after, got)
						}
					}
				})
			}
			require.Eventually(t, func() bool { return before.Load() >= 10 }, 20*time.Second, time.Millisecond)
			require.Equal(t, http.StatusNotFound, st.admin("GET", path, "", nil))
			require.Equal(t, http.StatusOK, st.admin("PUT", path, `{"reason":"a drill","until":null}`, nil))
			set.Store(true)
			require.Eventually(t, func() bool { return after.Load() >= 10 }, 20*time.Second, time.Millisecond)
			close(stop)
			callers.Wait()

			st.end()
			st.begin()
			var kept struct{ Reason, Who string }
			require.Equal(t, http.StatusOK, st.admin("GET", path, "", &kept))
			require.Equal(t, "a drill", kept.Reason)
			require.Equal(t, k.after, st.outcome(k.model), "kept over a restart")

			require.Less(t, st.admin("DELETE", path, "", nil), 300)
			require.Equal(t, k.before, st.outcome(k.model))
			require.Equal(t, http.StatusNotFound, st.admin("GET", path, "", nil))
		})
	}
}

// TestASwitchOfANameThatIsNotThere: a misspelt name kills nothing, and says so.
func TestASwitchOfANameThatIsNotThere(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "", "b": "", "f": ""}, switchable)
	for _, path := range []string{
		"channel/first/nobody", "group/nobody", "provider/nobody", "account/nobody", "model/nobody", "alias/nobody",
		"action/nothing", "alias-action/nobody/model_substitution", "alias-action/helper/nothing", "nothing/first",
	} {
		require.Equal(t, http.StatusNotFound, st.admin("PUT", "/admin/v1/switches/"+path, `{"reason":"a drill"}`, nil), path)
	}
	require.Equal(t, http.StatusBadRequest, st.admin("PUT", "/admin/v1/switches/group/first", `{"reason":""}`, nil))
	require.Equal(t, "200 initial first/a 1", st.outcome("m"))
}

// TestASwitchEndsAWait: a request that waits for its route's Retry-After gives up at once.
func TestASwitchEndsAWait(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"channel/chat/a", "action/same_route_retry"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			st := setUp(t, map[string]string{"a": "on chat\n  status 429\n  header Retry-After 18\n"}, oneChannel)
			got := make(chan string, 1)
			go func() { got <- st.outcome("m") }()
			_, err := st.providers["a"].WaitEnd(patience(t), 1)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, st.admin("PUT", "/admin/v1/switches/"+path, `{"reason":"a drill"}`, nil))
			select {
			case said := <-got:
				require.Equal(t, "429 routes_exhausted 1", said)
			case <-time.After(time.Second + late):
				require.Fail(t, "the request still waits")
			}
			st.calls(map[string]int{"a": 1})
		})
	}
}
