package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A channel without a queue serves as many at once as it may, one included: that its last
// place is taken by the request itself is no reason to turn it away.
func TestAChannelWithoutAQueueServesItsLimit(t *testing.T) {
	st := setUp(t, map[string]string{"a": ""}, `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, max_concurrency: 1, queue: {max: 0}, models: {m: {}}}
keys:
  - {name: k, key: "{{key}}", groups: [chat]}
`)
	for range 2 {
		got := st.chat(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		require.Equal(t, 200, got.Status, got.Body)
	}
}
