package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const twoChannels = `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, priority: 1, models: {m: {upstream_model: ma}}}
      - {name: b, provider: b, credential: sk-BBBB-canary-0002, priority: 2, models: {m: {upstream_model: mb}}}
keys:
  - {name: k, key: "{{key}}", groups: [chat]}
`

func TestAnUntriedEqualRouteAnswersForASickOne(t *testing.T) {
	st := setUp(t, map[string]string{
		"a": "on chat\n  times 2\n  status 503\n",
		"b": "healthy \"from b\" usage 7 2\n",
	}, twoChannels)
	for _, stream := range []string{"false", "true"} {
		got := st.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"hi"}]}`)
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "same_contract_fallback", got.Header.Get("interlock-cause"))
		require.Equal(t, "chat/b", got.Header.Get("interlock-route"))
		r := st.record(got.ID())
		require.Equal(t, "success", r.Terminal)
		require.Len(t, r.Attempts, 2)
		require.Equal(t, "server_error", r.Attempts[0].Class)
	}
}
