package bedrock_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func FuzzRequest(f *testing.F) {
	f.Add(`{`+hello+`}`, testModel)
	f.Add(`{"messages":[{"role":"assistant","reasoning_content":"abc","provider_data":[{"provider":"bedrock","vendor":"anthropic","type":"reasoning","signature":"a","reasoning_bytes":2}],"tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a b","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","stop":"a","reasoning_effort":"low"}`, "qwen.q")
	f.Add(`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}},"bedrock":{"system":[],"toolConfig":{"tools":[{}]},"x":1,"additionalModelRequestFields":{"a":1}}}`, "arn:a/b")
	f.Add(`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.b.pdf","file_data":"a"}},{"type":"file","file":{"file_id":"s3://a.md"}}]}]}`, "")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"structured_output":"tool","max_tokens":2000,"reasoning":"budget"}`} {
			g := newGuest(t, config)
			g.Model = model
			s, e := g.Request(body) // checks that what comes of it is JSON
			if e != nil {
				require.Contains(t, []string{interlock.CodeBadRequest, interlock.CodeUnsupportedParameter}, e.Code)
				continue
			}
			require.True(t, strings.HasPrefix(s.Path, "/model/"))
			require.NotContains(t, strings.TrimSuffix(strings.TrimPrefix(s.Path, "/model/"), "/converse"), "/")
			if s.State != "" {
				g.Play(s.State, nil, nil)
			}
		}
	})
}

// FuzzAnswer plays a line a frame, and the same text as a whole answer.
func FuzzAnswer(f *testing.F) {
	f.Add("messageStart {}\ncontentBlockDelta {\"delta\":{\"text\":\"a\"}}\nmessageStop {\"stopReason\":\"end_turn\"}\nmetadata {\"usage\":{\"inputTokens\":1}}", "")
	f.Add("contentBlockDelta {\"delta\":{\"reasoningContent\":{\"text\":\"a\"}}}\ncontentBlockDelta {\"delta\":{\"reasoningContent\":{\"signature\":\"b\"}}}\ncontentBlockStart {\"contentBlockIndex\":1,\"start\":{\"toolUse\":{\"name\":\"f\"}}}\ncontentBlockDelta {\"contentBlockIndex\":1,\"delta\":{\"toolUse\":{\"input\":\"{\"}}}", "")
	f.Add(`{"output":{"message":{"content":[{"text":"a"},{"toolUse":{"input":1}},{"reasoningContent":{"redactedContent":"a"}}]}},"stopReason":"tool_use","usage":{}}`, "\x00\x00\x00\x00\x01\x00\x00\x00f")
	f.Add("exception:throttlingException {}", "\xff")
	f.Fuzz(func(t *testing.T, text, state string) {
		g := newGuest(t, `{}`)
		if body, fail, e := g.Whole(state, []byte(text)); fail == nil && e == nil {
			require.True(t, json.Valid([]byte(body)), body)
		}
		var list []interlock.Frame
		for line := range strings.Lines(text) {
			name, data, _ := strings.Cut(strings.TrimSpace(line), " ")
			list = append(list, interlock.Frame{Name: name, Data: []byte(data)})
		}
		apart := g.Play("", list, func(int) bool { return true })
		together := g.Play("", list, func(int) bool { return false })
		require.Equal(t, apart, together)
		for _, c := range apart.Chunks {
			require.True(t, json.Valid([]byte(c)), c)
		}
	})
}
