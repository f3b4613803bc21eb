package cohere_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/cohere"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestConfig(t *testing.T) {
	for _, good := range []string{`{}`, `{"reasoning":"thinking","safety_mode":"OFF","input_type":"search_query"}`} {
		_, err := cohere.New([]byte(good))
		require.NoError(t, err, good)
	}
	for _, bad := range []string{``, `[]`, `{"reasoning":"high"}`, `{"safety_mode":"off"}`, `{"safety_mode":1}`, `{"input_type":"image"}`, `{"api_key":"k"}`} {
		_, err := cohere.New([]byte(bad))
		var e *interlock.Error
		require.ErrorAs(t, err, &e, bad)
		require.Equal(t, interlock.CodeConfig, e.Code)
	}
}

func TestTheConfigurationIsKept(t *testing.T) {
	config := []byte(`{"safety_mode":"STRICT"}`)
	p, err := cohere.New(config)
	require.NoError(t, err)
	for i := range config {
		config[i] = 'x'
	}
	var out interlock.Request
	require.NoError(t, p.Request(&interlock.Call{Model: `m"`}, []byte(`{`+hello+`}`), &out))
	require.JSONEq(t, `{"model":"m\"",`+hello+`,"safety_mode":"STRICT"}`, string(out.Body))
}

func TestRefused(t *testing.T) {
	user := func(part string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]`
	}
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	const unsupported, bad = interlock.CodeUnsupportedParameter, interlock.CodeBadRequest
	for _, c := range []struct{ endpoint, body, code, param string }{
		{"", hello + `,"n":2`, unsupported, "n"},
		{"", hello + `,"logprobs":true`, unsupported, "logprobs"},
		{"", hello + `,"top_logprobs":2`, unsupported, "top_logprobs"},
		{"", hello + `,"logit_bias":{"1":1}`, unsupported, "logit_bias"},
		{"", hello + `,"service_tier":"priority"`, unsupported, "service_tier"},
		{"", hello + `,"verbosity":"low"`, unsupported, "verbosity"},
		{"", hello + `,"modalities":["audio"]`, unsupported, "modalities"},
		{"", hello + `,"prediction":{}`, unsupported, "prediction"},
		{"", hello + `,"web_search_options":{}`, unsupported, "web_search_options"},
		{"", hello + `,"store":true`, unsupported, "store"},
		{"", hello + `,"k":5`, unsupported, "k"},
		{"", hello + tools + `,"parallel_tool_calls":false`, unsupported, "parallel_tool_calls"},
		{"", hello + tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, bad, "tool_choice.function.name"},
		{"", hello + `,"seed":-1`, bad, "seed"},
		{"", hello + `,"reasoning_effort":"much"`, bad, "reasoning_effort"},
		{"", hello + `,"reasoning_effort":"low"`, unsupported, "reasoning_effort"},
		{"", hello + `,"cohere":[]`, bad, "cohere"},
		{"", hello + `,"cohere":{"messages":[]}`, unsupported, "cohere.messages"},
		{"", hello + `,"cohere":{"tools":[]}`, unsupported, "cohere.tools"},
		{"", hello + `,"cohere":{"stream":true}`, unsupported, "cohere.stream"},
		{"", hello + `,"cohere":{"documents":{}}`, bad, "cohere.documents"},
		{"", hello + `,"cohere":{"safety_mode":"OFF"}`, unsupported, "cohere.safety_mode"},
		{"", user(`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`), unsupported, "messages[0].content[1].type"},
		{"", user(`{"type":"file","file":{"filename":"a.pdf","file_data":"AA=="}}`), unsupported, "messages[0].content[1].file"},
		{"", user(`{"type":"file","file":{"file_id":"f"}}`), unsupported, "messages[0].content[1].file"},
		{"", user(`{"type":"file","file":{"filename":"a.txt","file_data":"interlock:blob:abc"}}`), unsupported, "messages[0].content[1].file"},
		{"", user(`{"type":"file","file":{"filename":"a.txt","file_data":"/w=="}}`), unsupported, "messages[0].content[1].file"},
		{"", user(`{"type":"file","file":{"filename":"a.txt","file_data":"?"}}`), unsupported, "messages[0].content[1].file"},
		{"", user(`{"type":"file","file":{"filename":"a.txt","file_data":"=="}}`), bad, "messages[0].content[1].file.file_data"},
		{"", `"messages":[{"role":"tool","tool_call_id":"t","content":[{"type":"image_url","image_url":{"url":"u"}}]}]`, unsupported, "messages[0].content[0].type"},
		{"", `"messages":[{"role":"assistant","content":"a","provider_data":[{"provider":"cohere","type":"tool_plan"}]}]`, bad, "messages[0].provider_data"},
		{"embeddings", `"input":[[1,2]]`, unsupported, "input"},
		{"embeddings", `"input":"a","truncate":"END"`, unsupported, "truncate"},
		{"embeddings", `"input":"a","cohere":{"embedding_types":["int8"]}`, unsupported, "cohere.embedding_types"},
		{"embeddings", `"input":"a","cohere":{"documents":["a"]}`, unsupported, "cohere.documents"},
	} {
		t.Run(c.body, func(t *testing.T) {
			g := newGuest(t, `{"safety_mode":"STRICT"}`)
			if c.endpoint != "" {
				g.Endpoint = c.endpoint
			}
			_, e := g.Request(`{` + c.body + `}`)
			require.NotNil(t, e)
			require.Equal(t, []string{c.code, c.param}, []string{e.Code, e.Param})
		})
	}
}

func TestReasoningEffort(t *testing.T) {
	for _, c := range []struct {
		config, model, members string
		want                   any
	}{
		{`{}`, "command-a-reasoning-08-2025", ``, nil},
		{`{}`, "command-a-reasoning-08-2025", `,"reasoning_effort":"none"`, object{"type": "disabled"}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"minimal"`, object{"type": "enabled", "token_budget": 1024.0}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"low"`, object{"type": "enabled", "token_budget": 2048.0}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"medium"`, object{"type": "enabled", "token_budget": 8192.0}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"medium","max_tokens":4096`, object{"type": "enabled", "token_budget": 3072.0}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"low","max_tokens":1`, object{"type": "enabled", "token_budget": 1.0}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"high"`, object{"type": "enabled"}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"xhigh","max_tokens":99`, object{"type": "enabled"}},
		{`{}`, "command-a-plus-05-2026", `,"reasoning_effort":"high","cohere":{"thinking":{"type":"enabled","token_budget":5}}`, object{"type": "enabled", "token_budget": 5.0}},
		{`{}`, "command-r7b-12-2024", `,"reasoning_effort":"none"`, nil},
		{`{"reasoning":"none"}`, "command-a-plus-05-2026", `,"reasoning_effort":"none"`, nil},
		{`{"reasoning":"thinking"}`, "command-r7b-12-2024", `,"reasoning_effort":"high"`, object{"type": "enabled"}},
	} {
		g := newGuest(t, c.config)
		g.Model = c.model
		require.Equal(t, c.want, g.Body(hello + c.members)["thinking"], c)
	}
	for _, model := range []string{"command", "command-r", "command-r-plus-08-2024", "command-light", "command-a-03-2025", "command-a-vision-07-2025", "c4ai-aya-expanse-32b"} {
		g := newGuest(t, "{}")
		g.Model = model
		_, e := g.Request(`{` + hello + `,"reasoning_effort":"low"}`)
		require.NotNil(t, e, model)
		require.Equal(t, "reasoning_effort", e.Param)
	}
}

func TestToolChoice(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]`
	for members, want := range map[string][]any{
		tools:                               {nil, "fg"},
		tools + `,"tool_choice":"auto"`:     {nil, "fg"},
		tools + `,"tool_choice":"none"`:     {"NONE", "fg"},
		tools + `,"tool_choice":"required"`: {"REQUIRED", "fg"},
		tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`: {"REQUIRED", "g"},
		`,"tool_choice":"none"`:     {nil, ""},
		`,"tool_choice":"required"`: {"REQUIRED", ""},
	} {
		body := newGuest(t, "{}").Body(hello + members)
		names := ""
		for _, tool := range list(body["tools"]) {
			names += tool["function"].(object)["name"].(string)
		}
		require.Equal(t, want, []any{body["tool_choice"], names}, members)
	}
}

// The provider is strict with all tools or with none, and only where one has to have an argument.
func TestStrictTools(t *testing.T) {
	const strict = `{"type":"function","function":{"name":"f","strict":true,"parameters":{"required":["a"]}}}`
	for tools, want := range map[string]any{
		strict:                true,
		strict + `,` + strict: true,
		strict + `,{"function":{"name":"g","parameters":{"required":["a"]}}}`: nil,
		strict + `,{"function":{"name":"g","strict":true,"parameters":{}}}`:   nil,
		`{"type":"function","function":{"name":"f","strict":true}}`:           nil,
	} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + `,"tools":[` + tools + `]`)["strict_tools"], tools)
	}
	require.Equal(t, false, newGuest(t, "{}").Body(hello + `,"tools":[` + strict + `],"cohere":{"strict_tools":false}`)["strict_tools"])
}

func TestFormat(t *testing.T) {
	for format, want := range map[string]any{
		`{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`: object{
			"type": "json_object", "json_schema": object{"type": "object"},
		},
		`{"type":"text"}`:        nil,
		`{"type":"json_object"}`: object{"type": "json_object"},

		`{"type":"json_schema","json_schema":{"name":"n"}}`: object{"type": "json_object"},
	} {
		require.Equal(t, want, newGuest(t, "{}").Body(hello + `,"response_format":` + format)["response_format"])
	}
}

// A large string comes as a handle, and has to stay a string of its own, or all behind a comma.
func TestHandles(t *testing.T) {
	const handle = "interlock:blob:abcdef"
	s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"system","content":"` + handle + `"},{"role":"user","content":[` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + handle + `"}},{"type":"text","text":"` + handle + `"}]},` +
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"` + handle + `"}]}`)
	require.Nil(t, e)
	require.Equal(t, 3, strings.Count(s.Body, `"`+handle+`"`))
	require.Equal(t, 1, strings.Count(s.Body, `;base64,`+handle+`"`))
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status         int
		message, class string
	}{
		{400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.", interlock.ContextOverflow},
		{400, "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.", interlock.ClientInvalid},
		{400, "invalid request: temperature must be between 0 and 1.0 inclusive.", interlock.ClientInvalid},
		{400, "invalid request: model 'x' is not supported by the chat API", interlock.ModelUnavailable},
		{400, "finetuned model with name xyz is not ready for serving", interlock.ModelUnavailable},
		{401, "invalid api token", interlock.UpstreamAuth},
		{402, "Please add or update your payment method", interlock.UpstreamAuth},
		{403, "no", ""},
		{404, "model 'xyz' not found, make sure the correct model ID was used and that you have access to the model.", interlock.ModelUnavailable},
		{404, "404 page not found", ""},
		{422, "no", interlock.ClientInvalid},
		{429, "Please wait and try again later", interlock.RateLimited},
		{429, "You are using a Trial key, which is limited to 40 API calls / minute.", interlock.RateLimited},
		{429, "You are using a Trial key, which is limited to 1000 API calls / month.", interlock.UpstreamAuth},
		{498, "blocked", interlock.ContentFiltered},
		{499, "request cancelled", ""},
		{500, "internal server error", ""},
		{503, "service unavailable", interlock.Overloaded},
		{504, "timeout", ""},
	} {
		t.Run(fmt.Sprint(c.status, c.message), func(t *testing.T) {
			f := newGuest(t, "{}").Classify(c.status, nil, []byte(`{"id":"x","message":"`+c.message+`"}`))
			require.Equal(t, c.class, f.Class)
			require.Equal(t, c.message, f.Message)
			require.Zero(t, f.Status)
		})
	}
	require.Equal(t, interlock.RateLimited, newGuest(t, "{}").Classify(429, nil, []byte(`<html>`)).Class)
	require.Empty(t, newGuest(t, "{}").Classify(502, nil, nil).Class)
}

// An error may stand where an answer or an event should.
func TestErrorsInsideAnAnswer(t *testing.T) {
	for body, want := range map[string]interlock.Failure{
		`{"id":"x","message":"internal server error"}`:                    {Class: interlock.ServerError, Message: "internal server error"},
		`{"message":"too many tokens: a","error_type":"TOO_MANY_TOKENS"}`: {Class: interlock.ContextOverflow, Type: "TOO_MANY_TOKENS", Message: "too many tokens: a"},
		`{"message":"trial token rate limit exceeded"}`:                   {Class: interlock.RateLimited, Message: "trial token rate limit exceeded"},
	} {
		g := newGuest(t, "{}")
		_, f, e := g.Whole("", []byte(body))
		require.Nil(t, e)
		require.Equal(t, &want, f, body)
		require.Equal(t, &want, g.PlayData("", []string{body}, plugintest.Apart).Failure, body)
	}
}

func TestReasonsToFinish(t *testing.T) {
	for word, want := range map[string]string{
		"COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "ERROR_TOXIC": "content_filter", "SOMETHING_NEW": "stop",
	} {
		text, _, e := newGuest(t, "{}").Whole("", []byte(`{"message":{"content":[{"type":"text","text":"a"}]},"finish_reason":"`+word+`"}`))
		require.Nil(t, e)
		require.Equal(t, want, plugintest.ReadWhole(t, text).Finish, word)
	}
	for word, class := range map[string]string{"ERROR": interlock.ServerError, "TIMEOUT": interlock.Timeout} {
		_, f, _ := newGuest(t, "{}").Whole("", []byte(`{"message":{"content":[{"type":"text","text":"a"}]},"finish_reason":"`+word+`"}`))
		require.Equal(t, class, f.Class)
		require.Equal(t, word, f.Type)
	}
}

// A plan is kept until it is whole; one that a state has no room for is forgotten.
func TestPlans(t *testing.T) {
	piece := strings.Repeat("x", 1000)
	for count, want := range map[int]int{1: 1, 24: 1, 25: 0, 200: 0} {
		list := []string{`{"type":"message-start","id":"a"}`}
		for range count {
			list = append(list, `{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"`+piece+`"}}}`)
		}
		list = append(list, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`)
		for _, cut := range []func(int) bool{plugintest.Apart, plugintest.Together} {
			p := newGuest(t, "{}").PlayData("", list, cut)
			require.True(t, p.Done)
			data := plugintest.Assemble(t, p.Chunks).ProviderData
			require.Len(t, data, want)
			if want > 0 {
				require.Equal(t, count, strings.Count(string(data[0]), piece))
			}
		}
	}
}

func TestStreamWithoutAnEndIsNotWhole(t *testing.T) {
	g := newGuest(t, "{}")
	const text, end = `{"type":"content-delta","delta":{"message":{"content":{"text":"a"}}}}`, `{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}`
	require.False(t, g.PlayData("", []string{text}, plugintest.Apart).Done)
	require.False(t, g.PlayData("", []string{text, "[DONE]"}, plugintest.Apart).Done)
	p := g.PlayData("", []string{text, end}, plugintest.Apart)
	require.True(t, p.Done)
	require.Nil(t, plugintest.Assemble(t, p.Chunks).Usage)
	for _, list := range [][]string{{text, "{"}, {`[]`}, {text, `{"type":"message-end"}`}} {
		require.Equal(t, interlock.MalformedAnswer, g.PlayData("", list, plugintest.Apart).Failure.Class, list)
	}
}

func TestWholeAnswerWithoutAMessageIsMalformed(t *testing.T) {
	for _, body := range []string{``, `[]`, `{}`, `{"message":[]}`, `{"message":{}}`, `{"message":null,"finish_reason":"COMPLETE"}`} {
		_, f, e := newGuest(t, "{}").Whole("", []byte(body))
		require.Nil(t, f)
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
}

func TestUsage(t *testing.T) {
	for usage, want := range map[string]int64{
		`{"tokens":{"input_tokens":7.0,"output_tokens":1},"billed_units":{"input_tokens":2,"output_tokens":1}}`: 7,
		`{"billed_units":{"input_tokens":2,"output_tokens":1}}`:                                                 2,
	} {
		text, _, e := newGuest(t, "{}").Whole("", []byte(`{"message":{"content":"a"},"finish_reason":"COMPLETE","usage":`+usage+`}`))
		require.Nil(t, e)
		m := plugintest.ReadWhole(t, text)
		require.Equal(t, "a", m.Text)
		require.Equal(t, want, m.Usage.Prompt)
	}
}

func TestVectorsAreThoseThatWereAskedFor(t *testing.T) {
	g := newGuest(t, "{}")
	g.Endpoint = "embeddings"
	s, e := g.Request(`{"input":["a","b"]}`)
	require.Nil(t, e)
	for _, body := range []string{
		`{}`, `{"embeddings":{"float":[]}}`, `{"embeddings":{"float":[[1]]}}`, `{"embeddings":{"float":[[1],"AAAA"]}}`, `{"embeddings":[[1],[2]]}`,
	} {
		_, _, e := g.Whole(s.State, []byte(body))
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
	_, f, _ := g.Whole(s.State, []byte(`{"message":"m"}`))
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
		for _, text := range []string{"some text", "\\n more"} {
			w.Str("content-delta")
			w.Str(`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"` + text + `"}}}}`)
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
