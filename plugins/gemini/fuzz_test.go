package gemini_test

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
	f.Add(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Let me see","reasoning_content":"abc","provider_data":[
		{"provider":"gemini","type":"thought","signature":"a","reasoning_bytes":2},{"provider":"gemini","type":"text","signature":"b","text_start":1,"text_bytes":2,"calls":1},
		{"provider":"gemini","type":"part","part":{"a":1},"text_start":1},{"provider":"gemini","type":"function_call","tool_call_id":"x","own_id":true}],
		"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":""}}]},
		{"role":"tool","tool_call_id":"x","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],
		"tools":[{"type":"function","function":{"name":"f","parameters":{"type":["a","null"],"properties":{"a":{"anyOf":[{"const":1}]}}}}}],"tool_choice":"required","stop":"a","reasoning_effort":"low","n":2}`, "gemini-3-pro")
	f.Add(`{`+hello+`,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}},"gemini":{"toolConfig":{"a":1},"tools":[{}],"x":1,"generationConfig":{"topK":1}},"service_tier":"flex"}`, "models/../a")
	f.Add(`{"messages":[{"role":"system","content":"a"}]}`, "gemma-3-1b")
	f.Add(`{"input":["a","b"],"dimensions":3,"gemini":{"taskType":"a"}}`, "")
	f.Fuzz(func(t *testing.T, body, model string) {
		for _, config := range []string{`{}`, `{"schema":"openapi","reasoning":"budget","parent":"a/b","safety_settings":[{}]}`} {
			g := newGuest(t, config)
			g.Model = model
			for _, g.Endpoint = range []string{"chat_completions", "embeddings"} {
				s, e := g.Request(body) // checks that what comes of it is JSON
				if e != nil {
					require.Contains(t, []string{interlock.CodeBadRequest, interlock.CodeUnsupportedParameter}, e.Code)
					continue
				}
				_, rest, ok := strings.Cut(s.Path, "odels/")
				require.True(t, ok, s.Path)
				require.NotContains(t, rest, "/")
				require.NotContains(t, rest, "?")
			}
		}
	})
}

// FuzzAnswer plays a line a frame, and the same text as a whole answer.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"candidates":[{"content":{"parts":[{"text":"a","thought":true,"thoughtSignature":"s"},{"text":"b","thoughtSignature":"s"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`, "")
	f.Add(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`+"\n"+
		`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]['b']","stringValue":"x","willContinue":true}],"willContinue":true}}]}}]}`+"\n"+
		`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"y"},{"jsonPath":"$.a[1].c","numberValue":1}]}}]},"finishReason":"STOP"}]}`, "")
	f.Add(`{"promptFeedback":{"blockReason":"SAFETY"}}`, "\x00\x00\x00\x00\x01\x00\x00\x00f")
	f.Add(`{"error":{"code":503,"status":"UNAVAILABLE","details":[{"@type":"google.rpc.RetryInfo","retryDelay":"1s"}]}}`, "\xff")
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
		if !one.Done {
			return
		}
		for _, c := range argumentsOf(one.Chunks) {
			require.True(t, json.Valid([]byte(c)), "arguments %q", c)
		}
	})
}

// argumentsOf are the arguments of all calls of a stream, whatever its choices.
func argumentsOf(chunks []string) (all map[[2]int]string) {
	all = map[[2]int]string{}
	for _, text := range chunks {
		var w plugintest.Wire
		if json.Unmarshal([]byte(text), &w) != nil {
			continue
		}
		for _, c := range w.Choices {
			for _, call := range c.Delta.ToolCalls {
				all[[2]int{c.Index, call.Index}] += call.Function.Arguments
			}
		}
	}
	return all
}

// FuzzState hands in states that are nobody's.
func FuzzState(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00"), `{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"y"}]}}]},"finishReason":"STOP"}]}`)
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
