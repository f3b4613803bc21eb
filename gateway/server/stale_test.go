package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What one attempt has seen is not told of the next: an attempt that got no answer at all has
// no usage and no cost, whatever came before it.
func TestAnAttemptInheritsNothing(t *testing.T) {
	st := setUp(t, map[string]string{
		"a": "on chat stream\n  role\n  text \"half an answer\"\n  cut reset\n",
		"b": "on chat\n  cut reset\n",
	}, twoChannels+"budgets: {interactive: {max_attempts: 2, max_attempts_per_route: 1}}\n")
	got := st.chat(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "interlock-release", "buffered")
	require.Equal(t, 502, got.Status, got.Body)
	r := st.record(got.ID())
	require.Len(t, r.Attempts, 2)
	require.Equal(t, "yes", r.Attempts[0].Billable)
	require.Equal(t, "network", r.Attempts[1].Class)
	require.Equal(t, "unknown", r.Attempts[1].Billable)
	require.Nil(t, r.Attempts[1].Cost)
}

// A substitute's second channel answers though its first one is switched off.
func TestASubstitutesSecondChannelIsAskedFor(t *testing.T) {
	st := setUp(t, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": "", "c": ""}, `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
  c: {adapter: openai, base_url: "{{url c}}/v1"}
models:
  small: {context_window: 1000, capabilities: [streaming], price: {input: 1, output: 1}}
  large: {context_window: 9000, capabilities: [streaming], price: {input: 1, output: 1}}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, models: {small: {}}}
      - {name: b, provider: b, credential: sk-BBBB-canary-0002, priority: 1, models: {large: {}}}
      - {name: c, provider: c, credential: sk-CCCC-canary-0003, priority: 2, models: {large: {}}}
aliases:
  helper: {model: small, cross_model_fallback_allowed: true, substitutes: [{model: large}]}
keys:
  - {name: k, key: "{{key}}", groups: [chat]}
`)
	st.switchOff("channel", "chat/a")
	st.switchOff("channel", "chat/b")
	got := st.chat(`{"model":"helper","messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, "chat/c", got.Header.Get("interlock-route"))
	require.Equal(t, "model_substitution", got.Header.Get("interlock-cause"))
}
