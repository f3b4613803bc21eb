package mistral_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/mistral"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestConfig(t *testing.T) {
	for _, good := range []string{`{}`, `{"safe_prompt":false}`, `{"guardrails":[{}],"safe_prompt":true}`} {
		_, err := mistral.New([]byte(good))
		require.NoError(t, err, good)
	}
	for _, bad := range []string{``, `[]`, `{"safe_prompt":"yes"}`, `{"guardrails":{}}`, `{"api_key":"k"}`} {
		_, err := mistral.New([]byte(bad))
		var e *interlock.Error
		require.ErrorAs(t, err, &e, bad)
		require.Equal(t, interlock.CodeConfig, e.Code)
	}
}

func TestTheConfigurationIsKept(t *testing.T) {
	config := []byte(`{"safe_prompt":true,"guardrails":[{"a":1}]}`)
	p, err := mistral.New(config)
	require.NoError(t, err)
	for i := range config {
		config[i] = 'x'
	}
	var out interlock.Request
	require.NoError(t, p.Request(&interlock.Call{Model: "m"}, []byte(`{`+hello+`}`), &out))
	require.JSONEq(t, `{"model":"m",`+hello+`,"safe_prompt":true,"guardrails":[{"a":1}]}`, string(out.Body))
}

func TestRefused(t *testing.T) {
	user := func(part string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]`
	}
	const unsupported, bad = interlock.CodeUnsupportedParameter, interlock.CodeBadRequest
	for _, c := range []struct{ endpoint, body, code, param string }{
		{"", hello + `,"logprobs":true`, unsupported, "logprobs"},
		{"", hello + `,"top_logprobs":2`, unsupported, "top_logprobs"},
		{"", hello + `,"logit_bias":{"1":1}`, unsupported, "logit_bias"},
		{"", hello + `,"service_tier":"priority"`, unsupported, "service_tier"},
		{"", hello + `,"verbosity":"low"`, unsupported, "verbosity"},
		{"", hello + `,"modalities":["audio"]`, unsupported, "modalities"},
		{"", hello + `,"audio":{}`, unsupported, "audio"},
		{"", hello + `,"web_search_options":{}`, unsupported, "web_search_options"},
		{"", hello + `,"store":true`, unsupported, "store"},
		{"", hello + `,"top_k":5`, unsupported, "top_k"},
		{"", hello + `,"safe_prompt":true`, unsupported, "safe_prompt"},
		{"", hello + `,"seed":-1`, bad, "seed"},
		{"", hello + `,"reasoning_effort":"much"`, bad, "reasoning_effort"},
		{"", hello + `,"prediction":{}`, bad, "prediction.content"},
		{"", hello + `,"prediction":{"content":[{"text":"a"},{"text":"b"}]}`, unsupported, "prediction.content"},
		{"", hello + `,"mistral":[]`, bad, "mistral"},
		{"", hello + `,"mistral":{"messages":[]}`, unsupported, "mistral.messages"},
		{"", hello + `,"mistral":{"model":"m"}`, unsupported, "mistral.model"},
		{"", hello + `,"mistral":{"stream":true}`, unsupported, "mistral.stream"},
		{"", hello + `,"mistral":{"tools":{}}`, bad, "mistral.tools"},
		{"", hello + `,"mistral":{"safe_prompt":false}`, unsupported, "mistral.safe_prompt"},
		{"", hello + `,"mistral":{"guardrails":null}`, unsupported, "mistral.guardrails"},
		{"", user(`{"type":"file","file":{"file_data":"AA=="}}`), bad, "messages[0].content[1].file"},
		{"", `"messages":[{"role":"user","content":"b"},{"role":"assistant","content":"a","provider_data":[{"provider":"mistral","type":"thinking","signature":1}]}]`, bad, "messages[1].provider_data"},
		{"embeddings", `"input":[[1,2]]`, unsupported, "input"},
		{"embeddings", `"input":"a","truncate":true`, unsupported, "truncate"},
		{"embeddings", `"input":"a","mistral":{"encoding_format":"base64"}`, unsupported, "mistral.encoding_format"},
		{"embeddings", `"input":"a","mistral":{"input":"b"}`, unsupported, "mistral.input"},
	} {
		t.Run(c.body, func(t *testing.T) {
			g := newGuest(t, `{"safe_prompt":true,"guardrails":[]}`)
			if c.endpoint != "" {
				g.Endpoint = c.endpoint
			}
			_, e := g.Request(`{` + c.body + `}`)
			require.NotNil(t, e)
			require.Equal(t, []string{c.code, c.param}, []string{e.Code, e.Param})
		})
	}
}

func TestToolChoice(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for members, want := range map[string]any{
		tools:                               nil,
		tools + `,"tool_choice":"auto"`:     "auto",
		tools + `,"tool_choice":"none"`:     "none",
		tools + `,"tool_choice":"required"`: "any",
		tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`: object{
			"type": "function", "function": object{"name": "f"},
		},
		`,"tool_choice":"auto"`:     nil,
		`,"tool_choice":"none"`:     nil,
		`,"tool_choice":"required"`: "any",
	} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + members)["tool_choice"], members)
	}
	for members, want := range map[string]any{
		``: nil, `,"parallel_tool_calls":true`: nil, tools: nil,
		tools + `,"parallel_tool_calls":true`: true, tools + `,"parallel_tool_calls":false`: false,
	} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + members)["parallel_tool_calls"], members)
	}
}

func TestReasoningEffort(t *testing.T) {
	for word, want := range map[string]string{"none": "none", "minimal": "high", "low": "high", "medium": "high", "high": "high", "xhigh": "high"} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + `,"reasoning_effort":"` + word + `"`)["reasoning_effort"])
	}
	require.NotContains(t, newGuest(t, "{}").Body(hello), "reasoning_effort")
}

func TestFormat(t *testing.T) {
	for format, want := range map[string]any{
		`{"type":"text"}`:        nil,
		`{"type":"json_object"}`: object{"type": "json_object"},
		`{"type":"json_schema","json_schema":{"name":"n"}}`: object{
			"type": "json_schema", "json_schema": object{"name": "n", "schema": object{}},
		},
	} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + `,"response_format":` + format)["response_format"])
	}
}

// The provider refuses IDs that others make up; a call and its result keep the same one.
func TestStrangeIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"Nr1uNItcS", "Nr1uNItc", "Nr1uNItcS0", "call_1234", "a b", "toolu_01A09q90qw90lq917835lq9", `a\"b`, "é", strings.Repeat("a", 500)} {
		messages := list(newGuest(t, "{}").Body(`"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"` + id +
			`","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"r"}]`)["messages"])
		call := list(messages[1]["tool_calls"])[0]["id"].(string)
		require.Equal(t, call, messages[2]["tool_call_id"])
		require.Regexp(t, `^[a-zA-Z0-9]{9}$`, call)
		require.False(t, seen[call], "two IDs became one")
		seen[call] = true
		if id == "Nr1uNItcS" {
			require.Equal(t, id, call)
		}
	}
}

// A large string comes as a handle, and has to stay a string of its own, or all behind a comma.
func TestHandles(t *testing.T) {
	const handle = "interlock:blob:abcdef"
	s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"system","content":"` + handle + `"},{"role":"user","content":[` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + handle + `"}},{"type":"input_audio","input_audio":{"data":"` + handle + `","format":"wav"}},` +
		`{"type":"text","text":"` + handle + `"},{"type":"file","file":{"filename":"a.pdf","file_data":"` + handle + `"}}]},` +
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"` + handle + `"}]}`)
	require.Nil(t, e)
	require.Equal(t, 4, strings.Count(s.Body, `"`+handle+`"`))
	require.Equal(t, 2, strings.Count(s.Body, `;base64,`+handle+`"`))
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status            int
		body, class, code string
		message           string
	}{
		{400, `{"object":"error","message":"Prompt contains 300000 tokens, too large for model with 131072 maximum context length","type":"invalid_request_invalid_args","param":null,"code":"3051","raw_status_code":400}`, interlock.ContextOverflow, "3051", "Prompt contains"},
		{400, `{"object":"error","message":"reasoning_effort='medium' is not supported for this model.","type":"invalid_request_invalid_args","param":null,"code":"3051"}`, interlock.ClientInvalid, "3051", "reasoning_effort"},
		{400, `{"object":"error","message":"Invalid model: nope","type":"invalid_model","param":null,"code":"1500"}`, interlock.ModelUnavailable, "1500", "Invalid model"},
		{400, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}`, interlock.ClientInvalid, "3230", "Unexpected role"},
		{401, `{"detail":"Unauthorized"}`, interlock.UpstreamAuth, "", "Unauthorized"},
		{401, `{"message":"Unauthorized","request_id":"r"}`, interlock.UpstreamAuth, "", "Unauthorized"},
		{402, `{"message":"pay"}`, interlock.UpstreamAuth, "", "pay"},
		{403, `{"object":"error","message":"You do not have access to this model.","type":"forbidden","code":1}`, interlock.ModelUnavailable, "1", "access"},
		{403, `{"message":"This API key has no permission for this workspace."}`, interlock.UpstreamAuth, "", "API key"},
		{403, `{"message":"no"}`, "", "", "no"},
		{404, `{"message":"no Route matched with those values"}`, "", "", "no Route"},
		{422, `{"object":"error","message":{"detail":[{"type":"missing","loc":["body","messages",0,"content"],"msg":"Field required"}]},"type":"invalid_request_error","param":null,"code":null}`, interlock.ClientInvalid, "", "messages.0.content: Field required"},
		{429, `{"message":"Requests rate limit exceeded"}`, interlock.RateLimited, "", "Requests rate limit"},
		{429, `{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}`, interlock.RateLimited, "1300", "Rate limit"},
		{429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"invalid_request_error","param":null,"code":null}`, interlock.Overloaded, "", "Service tier"},
		{429, `<html>`, interlock.RateLimited, "", ""},
		{500, `{"object":"error","message":"Internal server error","type":"internal_server_error"}`, "", "", "Internal"},
		{502, `<html>`, "", "", ""},
		{503, `{"object":"error","message":"Service unavailable.","type":"internal_server_error","code":"1000"}`, interlock.Overloaded, "1000", "Service unavailable"},
		{504, ``, "", "", ""},
	} {
		t.Run(fmt.Sprint(c.status, c.body), func(t *testing.T) {
			f := newGuest(t, "{}").Classify(c.status, nil, []byte(c.body))
			require.Equal(t, c.class, f.Class)
			require.Equal(t, c.code, f.Code)
			require.Contains(t, f.Message, c.message)
			require.Zero(t, f.Status)
		})
	}
}

// An error may stand where an answer or an event should, and says its status itself.
func TestErrorsInsideAnAnswer(t *testing.T) {
	for body, want := range map[string]interlock.Failure{
		`{"object":"error","message":"m","type":"internal_server_error","code":"1000","raw_status_code":503}`: {
			Class: interlock.Overloaded, Type: "internal_server_error", Code: "1000", Message: "m", Status: 503,
		},
		`{"object":"error","message":"m"}`:         {Class: interlock.ServerError, Message: "m"},
		`{"error":"m"}`:                            {Class: interlock.ServerError, Message: "m"},
		`{"error":{"message":"m","code":3}}`:       {Class: interlock.ServerError, Message: "m", Code: "3"},
		`{"detail":"m"}`:                           {Class: interlock.ServerError, Message: "m"},
		`{"object":"error","type":"invalid_args"}`: {Class: interlock.ClientInvalid, Type: "invalid_args"},
	} {
		g := newGuest(t, "{}")
		_, f, e := g.Whole("", []byte(body))
		require.Nil(t, e)
		require.Equal(t, &want, f, body)
		require.Equal(t, &want, g.PlayData("", []string{body}, plugintest.Apart).Failure, body)
	}
}

func TestStreamWithoutAnEndIsNotWhole(t *testing.T) {
	g := newGuest(t, "{}")
	const text, finish = `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	require.False(t, g.PlayData("", []string{text}, plugintest.Apart).Done)
	require.True(t, g.PlayData("", []string{text, finish}, plugintest.Apart).Done)
	require.True(t, g.PlayData("", []string{text, finish, "[DONE]"}, plugintest.Apart).Done)
	for _, list := range [][]string{{"[DONE]"}, {text, "[DONE]"}, {text, finish, `{"choices":[{"index":1,"delta":{"content":"a"}}]}`, "[DONE]"}, {text, "{"}, {"{}"}, {`{"choices":[{"index":128}]}`}} {
		require.Equal(t, interlock.MalformedAnswer, g.PlayData("", list, plugintest.Apart).Failure.Class, list)
	}
}

func TestWholeAnswerWithoutAChoiceIsMalformed(t *testing.T) {
	for _, body := range []string{``, `[]`, `{}`, `{"choices":[]}`, `{"choices":{}}`, `{"choices":null}`} {
		_, f, e := newGuest(t, "{}").Whole("", []byte(body))
		require.Nil(t, f)
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
	text, _, e := newGuest(t, "{}").Whole("", []byte(`{"choices":[{"message":{"content":"a"}}]}`))
	require.Nil(t, e)
	require.Equal(t, "stop", plugintest.ReadWhole(t, text).Finish, "a whole answer is not cut")
}

func TestVectorsAreThoseThatWereAskedFor(t *testing.T) {
	g := newGuest(t, "{}")
	g.Endpoint = "embeddings"
	s, e := g.Request(`{"input":["a","b"]}`)
	require.Nil(t, e)
	for _, body := range []string{
		`{"data":[]}`, `{"data":[{"embedding":[1]}]}`, `{"data":[{"embedding":[1]},{"embedding":"AAAA"}]}`,
		`{"data":[{"index":1,"embedding":[1]},{"index":0,"embedding":[2]}]}`, `{}`,
	} {
		_, _, e := g.Whole(s.State, []byte(body))
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
	_, f, _ := g.Whole(s.State, []byte(`{"detail":"m"}`))
	require.Equal(t, "m", f.Message)
}

func TestEventsAllocateNothing(t *testing.T) {
	g := newGuest(t, "{}")
	g.Stream = true
	input := func(state string) []byte {
		w := interlock.Writer(g.Context())
		w.Str(state)
		w.Bool(false)
		w.U32(2)
		for _, content := range []string{`"some text"`, `[{"type":"text","text":"\n more"}]`} {
			w.Str("")
			w.Str(`{"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":` + content + `},"finish_reason":null}],"p":"abc"}`)
		}
		return w
	}
	dst := make([]byte, 0, 16<<10)
	out, failed := g.G.Call(interlock.OpEvents, input(""), dst)
	require.False(t, failed)
	r := interlock.NewReader(out)
	r.U32()
	in := input(r.Str())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, failed := g.G.Call(interlock.OpEvents, in, dst); failed {
			panic("failed")
		}
	}))
}

func TestTheModelIsQuoted(t *testing.T) {
	g := newGuest(t, "{}")
	g.Model = `ft:a"b\c`
	var v object
	s, e := g.Request(`{` + hello + `}`)
	require.Nil(t, e)
	require.NoError(t, json.Unmarshal([]byte(s.Body), &v))
	require.Equal(t, g.Model, v["model"])
}
