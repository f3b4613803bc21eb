package mistral_test

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
	f.Add(`{"messages":[{"role":"assistant","reasoning_content":"abc","provider_data":[{"provider":"mistral","type":"thinking","signature":"a","reasoning_bytes":2}],"tool_calls":[{"id":"a b","type":"function","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"a b","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"user","content":""}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","stop":"a","reasoning_effort":"low"}`, "m")
	f.Add(`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}},"mistral":{"tools":[{}],"x":1,"n":null},"prediction":{"content":"a"}}`, `a"b`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.b.pdf","file_data":"a"}},{"type":"file","file":{"file_id":"https://a.md"}}]},{"role":"assistant","content":"a"}]}`, "")
	f.Add(`{"input":["a","b"],"dimensions":3,"mistral":{"output_dtype":"a"}}`, "")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"safe_prompt":true,"guardrails":[{}]}`} {
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
	f.Add(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}],"signature":"s"},{"type":"text","text":"b"}]}}]}`+"\n"+`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`+"\n[DONE]", "")
	f.Add(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","index":0,"function":{"name":"f","arguments":"{"}}]}},{"index":3,"delta":{"content":"x"}}]}`+"\n"+
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"id":"null","function":{"name":"g","arguments":{}}}]},"finish_reason":"tool_calls"},{"index":3,"finish_reason":"model_length"}]}`, "")
	f.Add(`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{}}`, "\x00\x00\x00\x00\x01\x00\x00\x00f")
	f.Add(`{"object":"error","message":{"detail":[{"loc":["body","a",1],"msg":"m"}]},"raw_status_code":422}`, "\xff")
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
	f.Add([]byte("\x00\x00\x00\x00"), `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}`)
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
