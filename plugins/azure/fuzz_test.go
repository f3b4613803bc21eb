package azure_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func FuzzRequest(f *testing.F) {
	f.Add(`{`+hello+`,"stream":true,"stream_options":{"a":1},"azure":{"data_sources":[],"x":1}}`, testModel)
	f.Add(`{"messages":[{"role":"\u0064eveloper","content":"a","provider_data":[{}],"reasoning_content":null}],"max_tokens":1,"max_completion_tokens":2}`, "..")
	f.Add(`{"messages":[1,"provider_data"],"store":false,"service_tier":"auto"}`, "a/b c")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"api":"models"}`, `{"api":"deployments","api_version":"2024-06-01"}`} {
			g := newGuest(t, config)
			g.Model, g.Stream = model, true
			s, e := g.Request(body) // checks that what comes of it is JSON
			if e != nil {
				require.Contains(t, []string{interlock.CodeBadRequest, interlock.CodeUnsupportedParameter}, e.Code)
				continue
			}
			path, _, _ := strings.Cut(s.Path, "?")
			require.True(t, strings.HasSuffix(path, "/chat/completions"))
			want := 4
			switch {
			case strings.HasPrefix(path, "/models/"):
				want = 3
			case strings.HasPrefix(path, "/openai/deployments/"):
				want = 5
			}
			require.Equal(t, want, strings.Count(path, "/"))
		}
	})
}

// FuzzAnswer plays a line a frame, and the same text as a whole answer.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"id":"","choices":[],"prompt_filter_results":[{}]}`+"\n"+`{"id":"c","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`+"\n"+`{"id":"","choices":[{"index":0,"finish_reason":"stop"}]}`+"\n[DONE]", "")
	f.Add(`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}},1]}},2]}`, "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00[]\x00\x00\x00\x00")
	f.Add(`{"choices":[{"finish_reason":"tool_calls","delta":{"tool_calls":[{"index":3,"function":{"name":"f"}}]}}],"error":null}`, "\xff")
	f.Fuzz(func(t *testing.T, text, state string) {
		g := newGuest(t, `{}`)
		if body, fail, e := g.Whole(state, []byte(text)); fail == nil && e == nil {
			require.True(t, json.Valid([]byte(body)), body)
		}
		var list []interlock.Frame
		for line := range strings.Lines(text) {
			list = append(list, interlock.Frame{Data: []byte(strings.TrimSpace(line))})
		}
		apart := g.Play("", list, func(int) bool { return true })
		together := g.Play("", list, func(int) bool { return false })
		require.Equal(t, apart, together)
		for _, c := range apart.Chunks {
			require.True(t, json.Valid([]byte(c)), c)
		}
	})
}
