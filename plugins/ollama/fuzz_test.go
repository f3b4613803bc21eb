package ollama_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func FuzzRequest(f *testing.F) {
	f.Add(`{`+hello+`,"stop":"a","seed":1,"ollama":{"options":{"a":1},"tools":[{}],"x":1},"response_format":{"type":"json_object"}}`, testModel)
	f.Add(`{"messages":[{"role":"assistant","reasoning_content":"abc","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"tools":[{"type":"function","function":{"name":"f"}}],"reasoning_effort":"low"}`, "gpt-oss")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"options":{"num_ctx":1,"stop":null},"keep_alive":1,"reasoning":"level"}`} {
			g := newGuest(t, config)
			g.Model = model
			s, e := g.Request(body) // checks that what comes of it is JSON
			if e != nil {
				require.Contains(t, []string{interlock.CodeBadRequest, interlock.CodeUnsupportedParameter}, e.Code)
				continue
			}
			require.Equal(t, "/api/chat", s.Path)
		}
	})
}

// FuzzAnswer plays a line a frame, and the same text as a whole answer.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"message":{"content":"a","thinking":"b"},"done":false}`+"\n"+`{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}`+"\n"+`{"done":true,"eval_count":1}`, "")
	f.Add(`{"message":{"content":"a","tool_calls":[{"id":1,"function":{"name":"f"}}]},"done":true,"done_reason":"length"}`, "\x00\x00\x00\x00")
	f.Add(`{"error":"a"}`, "\xff")
	f.Fuzz(func(t *testing.T, text, state string) {
		g := newGuest(t, `{}`)
		if body, fail, e := g.Whole(state, []byte(text)); fail == nil && e == nil {
			require.True(t, json.Valid([]byte(body)), body)
		}
		apart := g.Play("", frames([]byte(text)), func(int) bool { return true })
		together := g.Play("", frames([]byte(text)), func(int) bool { return false })
		require.Equal(t, apart, together)
		for _, c := range apart.Chunks {
			require.True(t, json.Valid([]byte(c)), c)
		}
	})
}
