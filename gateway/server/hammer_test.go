package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/ledger"
)

// About a third of what this provider answers fails, each time in another way.
const stumbling = `
seed %d
on any
  chance 6%%
  status 503
on any
  chance 6%%
  status 429
on any
  chance 5%%
  cut reset
on any
  chance 5%%
  status 500
on chat stream
  chance 5%%
  role
  error {"message":"Overloaded","type":"overloaded_error","code":"overloaded"}
on chat stream
  chance 5%%
  role
  text "half "
  cut fin
on any
  chance 4%%
  html "<html>busy</html>"
on any
  chance 4%%
  delay 30ms
`

const crowd = `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
  c: {adapter: openai, base_url: "{{url c}}/v1"}
models:
  big: {context_window: 100000, capabilities: [streaming, tools], price: {input: 1, output: 1}}
  small: {context_window: 100000, capabilities: [streaming, tools], price: {input: 1, output: 1}}
budgets:
  interactive: {max_attempts: 4, backoff: {base: 5ms, max: 20ms, max_wait: 1s}, deadline: 20s}
breaker: {consecutive_failures: 0, failure_ratio: 0}
groups:
  - name: first
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, priority: 1, max_concurrency: 16, queue: {max: 1000, wait: 10s}, models: {big: {}}}
      - {name: b, provider: b, credential: sk-BBBB-canary-0002, priority: 1, max_concurrency: 16, queue: {max: 1000, wait: 10s}, models: {big: {}}}
  - name: second
    channels:
      - {name: c, provider: c, credential: sk-CCCC-canary-0003, models: {big: {}, small: {}}}
aliases:
  helper: {model: big, cross_model_fallback_allowed: true, substitutes: [{model: small}]}
keys:
  - {name: k, key: "{{key}}", groups: [first, second]}
`

// One upstream call is one ledger attempt, whatever fails and whoever leaves.
func TestEveryUpstreamCallIsOneAttempt(t *testing.T) {
	scripts := map[string]string{}
	for i, name := range []string{"a", "b", "c"} {
		scripts[name] = fmt.Sprintf(stumbling, i+1)
	}
	st := setUp(t, scripts, crowd)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 5 {
				askAsOneOfMany(st, r)
			}
		})
	}
	group.Wait()
	require.Eventually(t, func() bool { return st.gateway.Running() == 0 }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, st.ledger.Flush(t.Context()))
	require.Zero(t, st.ledger.Status().Misuse)

	recorded := map[string]int{}
	seen := 0
	for filter := (ledger.Filter{Limit: 1000}); ; {
		page, err := st.ledger.Reader().List(t.Context(), filter)
		require.NoError(t, err)
		for _, r := range page.Requests {
			seen++
			require.NotZero(t, r.Terminal, "request %s is still open", r.ID)
			for i := range r.Attempts {
				a := &r.Attempts[i]
				require.NotZero(t, a.End, "attempt %d of %s is still open", a.Number, r.ID)
				if a.Sent.Known || a.Connected.Known {
					recorded[a.Channel]++
				}
			}
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	require.Greater(t, seen, 800) // some callers leave before their request is out
	for name, p := range st.providers {
		require.Equal(t, p.Count(), recorded[name], "calls that provider %s counted and attempts on its channel", name)
		require.Positive(t, recorded[name])
	}
	for _, g := range st.gateway.Generation().Table.Groups() {
		for _, c := range g.Channels {
			running, waiting := c.Gate.Load()
			require.Zero(t, running+waiting, c.Label())
		}
	}
}

// askAsOneOfMany makes one request, streamed or not, and leaves early every tenth time.
func askAsOneOfMany(st *stand, r *rand.Rand) {
	model := []string{"big", "helper"}[r.IntN(2)]
	body := fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"hi"}]}`, model, r.IntN(2) == 0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if r.IntN(10) == 0 {
		var early context.CancelFunc
		ctx, early = context.WithTimeout(ctx, time.Duration(r.IntN(30))*time.Millisecond)
		defer early()
	}
	_, _ = st.post(ctx, "/v1/chat/completions", body) // what it was is in the ledger
}
