package cohere_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func FuzzRequest(f *testing.F) {
	f.Add(`{`+hello+`}`, testModel)
	f.Add(`{"messages":[{"role":"assistant","reasoning_content":"abc","provider_data":[{"provider":"cohere","type":"thinking","reasoning_bytes":2},{"provider":"cohere","type":"tool_plan","text":"p"}],"tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a b","content":[{"type":"file","file":{"filename":"a.txt","file_data":"YQ=="}}]},{"role":"user","content":""}],"tools":[{"type":"function","function":{"name":"f","strict":true}}],"tool_choice":"required","stop":"a","reasoning_effort":"low"}`, "m")
	f.Add(`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}},"cohere":{"documents":[{}],"x":1,"seed":null}}`, `a"b`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.md","file_data":"Y-_h"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`, "")
	f.Add(`{"input":["a","b"],"dimensions":3,"cohere":{"truncate":"a"}}`, "")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"reasoning":"thinking","safety_mode":"OFF"}`} {
			g := newGuest(t, config)
			g.Model = model
			for _, g.Endpoint = range []string{"chat_completions", "embeddings"} {
				_, e := g.Request(body) // checks that what comes of it is JSON
				if e != nil {
					require.Contains(t, []string{interlock.CodeBadRequest, interlock.CodeUnsupportedParameter}, e.Code)
				}
			}
		}
	})
}

// FuzzAnswer plays a line a frame, and the same text as a whole answer.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"message-start","id":"a"}`+"\n"+`{"type":"content-start","delta":{"message":{"content":{"thinking":"a"}}}}`+"\n"+`{"type":"content-delta","delta":{"message":{"content":{"text":"a"}}}}`+"\n"+
		`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":1}}}}`, "")
	f.Add(`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"p"}}}`+"\n"+`{"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":"a","function":{"name":"f","arguments":""}}}}}`+"\n"+
		`{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}`+"\n"+`{"type":"tool-call-end"}`+"\n"+`{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}`, "")
	f.Add(`{"id":"a","message":{"content":[{"text":"a"}],"tool_plan":"p","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"TOOL_CALL","usage":{}}`, "\x00\x00\x00\x00\x01\x00\x00\x00f")
	f.Add(`{"id":"a","message":"too many tokens","error_type":"T"}`, "\xff")
	f.Fuzz(func(t *testing.T, text, state string) {
		g := newGuest(t, `{}`)
		if body, fail, e := g.Whole(state, []byte(text)); fail == nil && e == nil {
			require.True(t, json.Valid([]byte(body)), body)
		}
		g.Classify(400, nil, []byte(text))
		list := strings.Split(text, "\n")
		one := g.PlayData("", list, plugintest.Apart)
		require.Equal(t, one, g.PlayData("", list, plugintest.Together))
		for _, c := range one.Chunks {
			require.True(t, json.Valid([]byte(c)), c)
		}
	})
}

// FuzzState hands in states that are nobody's.
func FuzzState(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00"), `{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}`)
	f.Fuzz(func(t *testing.T, state []byte, text string) {
		g := newGuest(t, `{}`)
		w := interlock.Writer(g.Context())
		w.Bytes(state)
		w.Bool(true)
		w.U32(1)
		w.Str("")
		w.Str(text)
		g.G.Call(interlock.OpEvents, w, nil)
	})
}
