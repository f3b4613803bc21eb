package ollama_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/ollama"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"hi"}]`

func TestConfiguration(t *testing.T) {
	for config, says := range map[string]string{
		`[]`:                 "not a JSON object",
		`{"options":[]}`:     "must be an object",
		`{"keep_alive":{}}`:  "keep_alive must be",
		`{"reasoning":"on"}`: "auto, switch, level or none",
		`{"num_ctx":1}`:      "unknown key",
	} {
		_, err := ollama.New([]byte(config))
		require.ErrorContains(t, err, says, config)
	}
}

func TestReasoningEffort(t *testing.T) {
	for _, c := range []struct{ config, model, effort, want string }{
		{`{}`, "qwen3:8b", "none", `false`},
		{`{}`, "qwen3:8b", "minimal", `true`},
		{`{}`, "deepseek-r1", "high", `true`},
		{`{}`, "gpt-oss:20b", "minimal", `"low"`},
		{`{}`, "someone/gpt-oss-120b", "medium", `"medium"`},
		{`{}`, "gpt-oss", "xhigh", `"high"`},
		{`{"reasoning":"switch"}`, "gpt-oss", "low", `true`},
		{`{"reasoning":"level"}`, "qwen4", "low", `"low"`},
		{`{"reasoning":"none"}`, "llama3", "none", ``},
	} {
		g := newGuest(t, c.config)
		g.Model = c.model
		s, e := g.Request(`{` + hello + `,"reasoning_effort":"` + c.effort + `"}`)
		require.Nil(t, e)
		var body map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
		require.Equal(t, c.want, string(body["think"]), "%+v", c)
	}
	for _, c := range [][3]string{{`{}`, "gpt-oss:20b", "none"}, {`{"reasoning":"none"}`, "llama3", "low"}, {`{}`, "llama3", "most"}} {
		g := newGuest(t, c[0])
		g.Model = c[1]
		_, e := g.Request(`{` + hello + `,"reasoning_effort":"` + c[2] + `"}`)
		require.NotNil(t, e)
		require.Equal(t, "reasoning_effort", e.Param)
	}
}

func TestRefused(t *testing.T) {
	user := func(part string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]`
	}
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct{ body, code, param string }{
		{hello + `,"n":2`, interlock.CodeUnsupportedParameter, "n"},
		{hello + `,"logprobs":true`, interlock.CodeUnsupportedParameter, "logprobs"},
		{hello + `,"logit_bias":{"1":1}`, interlock.CodeUnsupportedParameter, "logit_bias"},
		{hello + `,"verbosity":"low"`, interlock.CodeUnsupportedParameter, "verbosity"},
		{hello + `,"service_tier":"flex"`, interlock.CodeUnsupportedParameter, "service_tier"},
		{hello + `,"top_k":5`, interlock.CodeUnsupportedParameter, "top_k"},
		{hello + tools + `,"parallel_tool_calls":false`, interlock.CodeUnsupportedParameter, "parallel_tool_calls"},
		{hello + tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, interlock.CodeUnsupportedParameter, "tool_choice"},
		{hello + `,"ollama":1`, interlock.CodeBadRequest, "ollama"},
		{hello + `,"ollama":{"options":[]}`, interlock.CodeBadRequest, "ollama.options"},
		{hello + `,"ollama":{"tools":{}}`, interlock.CodeBadRequest, "ollama.tools"},
		{hello + `,"ollama":{"model":"x"}`, interlock.CodeUnsupportedParameter, "ollama.model"},
		{hello + `,"ollama":{"stream":true}`, interlock.CodeUnsupportedParameter, "ollama.stream"},
		{user(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1].file"},
		{user(`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1].input_audio"},
		{user(`{"type":"image_url","image_url":{"url":"https://a/b.png"}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1].image_url.url"},
		{`"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"[]"}}]}]`, interlock.CodeBadRequest, "messages[0].tool_calls[0].function.arguments"},
	} {
		_, e := newGuest(t, `{}`).Request(`{` + c.body + `}`)
		require.NotNil(t, e, c.body)
		require.Equal(t, c.code, e.Code, c.body)
		require.Equal(t, c.param, e.Param, c.body)
	}
}

// A message has one text and images around it; more texts are more messages, and what is said once
// of a message is said of the first or the last of them.
func TestParts(t *testing.T) {
	image := func(data string) string {
		return `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`
	}
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	s, e := newGuest(t, `{}`).Request(`{"messages":[
		{"role":"user","content":[` + image("AA==") + `,` + text("a") + `,` + image("BB==") + `,` + text("b") + `]},
		{"role":"assistant","reasoning_content":"r","content":[` + text("c") + `,` + text("d") + `],"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"i","content":[` + text("e") + `,` + text("f") + `]},
		{"role":"tool","tool_call_id":"unheard of","content":"g"},
		{"role":"assistant","content":null,"refusal":"no"},
		{"role":"assistant","content":[]}]}`)
	require.Nil(t, e)
	var body struct{ Messages json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
	require.JSONEq(t, `[
		{"role":"user","content":"a","images":["AA==","BB=="]},{"role":"user","content":"b"},
		{"role":"assistant","content":"c","thinking":"r"},{"role":"assistant","content":"d","tool_calls":[{"id":"i","function":{"name":"f","arguments":{}}}]},
		{"role":"tool","content":"e","tool_name":"f","tool_call_id":"i"},{"role":"tool","content":"f","tool_name":"f","tool_call_id":"i"},
		{"role":"tool","content":"g","tool_call_id":"unheard of"},
		{"role":"assistant","content":"no"},
		{"role":"assistant","content":""}]`, string(body.Messages))
}

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]string{`"stop"`: "stop", `"length"`: "length", `"load"`: "stop", `"unload"`: "stop", `"other"`: "stop", `null`: "stop"} {
		text, f, e := newGuest(t, `{}`).Whole("", []byte(`{"message":{"role":"assistant","content":"a"},"done":true,"done_reason":`+reason+`}`))
		require.Nil(t, f)
		require.Nil(t, e)
		m := plugintest.ReadWhole(t, text)
		require.Equal(t, want, m.Finish)
		require.Nil(t, m.Usage, "there was none")
	}
}

func TestBrokenAnswers(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"done":false}`, `{"message":{"content":"a"}}`, `{"message":{"content":"a"},"done":false}`,
		`{"message":{"tool_calls":[{}]},"done":true}`, `{"message":{"tool_calls":[{"function":{"name":""}}]},"done":true}`,
	} {
		_, f, e := newGuest(t, `{}`).Whole("", []byte(body))
		require.Nil(t, f)
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
	g := newGuest(t, `{}`)
	g.Endpoint = "embeddings"
	for _, body := range []string{`{}`, `{"embeddings":[]}`, `{"embeddings":[1]}`, `{"embeddings":[["a"]]}`} {
		_, _, e := g.Whole("", []byte(body))
		require.NotNil(t, e, body)
	}
	_, f, _ := g.Whole("", []byte(`{"error":"server busy, please try again"}`))
	require.Equal(t, &interlock.Failure{Class: interlock.Overloaded, Message: "server busy, please try again"}, f)
}

func TestAStreamThatIsCutIsNotWhole(t *testing.T) {
	p := newGuest(t, `{}`).Play("", frames([]byte(`{"message":{"content":"a"},"done":false}`)), func(int) bool { return true })
	require.Nil(t, p.Failure)
	require.False(t, p.Done)
	require.Equal(t, plugintest.Message{Text: "a"}, plugintest.Assemble(t, p.Chunks))
}

func TestStreamsThatFail(t *testing.T) {
	for line, want := range map[string]*interlock.Failure{
		`nothing`:              {Class: interlock.MalformedAnswer, Message: "a line is not a JSON object"},
		`{"done":false}`:       {Class: interlock.MalformedAnswer, Message: "a line has neither a message nor an error"},
		`{"error":"it broke"}`: {Class: interlock.ServerError, Message: "it broke"},
		`{"error":{"message":"it broke","type":"api_error","code":"x"}}`:       {Class: interlock.ServerError, Message: "it broke", Type: "api_error", Code: "x"},
		`{"error":"Prompt too long; exceeded max context length by 5 tokens"}`: {Class: interlock.ContextOverflow, Message: "Prompt too long; exceeded max context length by 5 tokens"},
	} {
		p := newGuest(t, `{}`).Play("", frames([]byte(`{"message":{"content":"a"},"done":false}`+"\n"+line)), func(int) bool { return true })
		require.Equal(t, want, p.Failure, line)
		require.Equal(t, "a", plugintest.Assemble(t, p.Chunks).Text)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status         int
		message, class string
	}{
		{400, "prompt too long; exceeded max context length by 1119046 tokens", interlock.ContextOverflow},
		{400, "the input length exceeds the context length", interlock.ContextOverflow},
		{400, `registry.ollama.ai/library/gemma:latest does not support tools`, ""},
		{400, `"qwen2" does not support thinking`, ""},
		{401, "unauthorized", ""},
		{404, `model "llama9" not found, try pulling it first`, interlock.ModelUnavailable},
		{404, "model 'llama9' not found", interlock.ModelUnavailable},
		{400, "tool 'x' not found", ""},
		{429, "you have reached your hourly usage limit", ""},
		{500, "model runner has unexpectedly stopped, this may be due to resource limitations", ""},
		{503, "server busy, please try again.  maximum pending requests exceeded", interlock.Overloaded},
		{400, "server busy", ""},
	} {
		text, err := json.Marshal(object{"error": c.message})
		require.NoError(t, err)
		f := newGuest(t, `{}`).Classify(c.status, map[string]string{"retry-after": "2"}, text)
		require.Equal(t, &interlock.Failure{Class: c.class, Message: c.message, HasRetryAfter: true, RetryAfter: 2000}, f)
	}
	require.Equal(t, &interlock.Failure{}, newGuest(t, `{}`).Classify(502, nil, []byte(strings.Repeat("<", 9))))
}
