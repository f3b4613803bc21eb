package gemini_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/gemini"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestConfiguration(t *testing.T) {
	for _, good := range []string{
		`{}`, `{"api_version":"v1"}`, `{"api_version":"v1beta1","parent":"projects/a.b-c/locations/us-east5/publishers/google"}`,
		`{"reasoning":"auto","include_thoughts":true,"schema":"json","safety_settings":[]}`,
	} {
		_, err := gemini.New([]byte(good))
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		``, `[]`, `{"x":1}`, `{"api_version":""}`, `{"api_version":"1"}`, `{"api_version":"v1/.."}`, `{"api_version":"V1"}`, `{"api_version":1}`,
		`{"parent":""}`, `{"parent":"a/"}`, `{"parent":"/a"}`, `{"parent":"a//b"}`, `{"parent":"a/../b"}`, `{"parent":"a?b"}`, `{"parent":"a/.b"}`,
		`{"reasoning":"high"}`, `{"include_thoughts":"yes"}`, `{"schema":true}`, `{"safety_settings":{}}`,
	} {
		_, err := gemini.New([]byte(bad))
		var e *interlock.Error
		require.ErrorAs(t, err, &e, bad)
		require.Equal(t, interlock.CodeConfig, e.Code)
	}
}

func TestThePathIsOneModel(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-2.5-flash":        "/v1beta/models/gemini-2.5-flash:generateContent",
		"models/gemini-2.5-flash": "/v1beta/models/gemini-2.5-flash:generateContent",
		"tunedModels/mine":        "/v1beta/tunedModels/mine:generateContent",
		"../../v1/files":          "/v1beta/models/..%2F..%2Fv1%2Ffiles:generateContent",
		"models/../x":             "/v1beta/models/..%2Fx:generateContent",
		"a?key=b#c%":              "/v1beta/models/a%3Fkey%3Db%23c%25:generateContent",
		"ä:b":                     "/v1beta/models/%C3%A4%3Ab:generateContent",
	} {
		g := newGuest(t, `{}`)
		g.Model = model
		s, e := g.Request(`{` + hello + `}`)
		require.Nil(t, e)
		require.Equal(t, want, s.Path)
		require.Empty(t, s.Header)
		require.JSONEq(t, `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`, s.Body)
	}
}

func TestTierOfVertex(t *testing.T) {
	g := newGuest(t, `{"parent":"projects/p/locations/l/publishers/google"}`)
	s, e := g.Request(`{` + hello + `,"service_tier":"priority"}`)
	require.Nil(t, e)
	require.Equal(t, []string{"x-vertex-ai-llm-shared-request-type: priority"}, s.Header)
	require.NotContains(t, s.Body, "priority")
}

func TestReasoningEffort(t *testing.T) {
	for _, c := range []struct{ model, effort, want string }{
		{"gemini-2.5-flash", "none", `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "minimal", `{"thinkingBudget":1024,"includeThoughts":true}`},
		{"gemini-2.5-flash-lite", "medium", `{"thinkingBudget":8192,"includeThoughts":true}`},
		{"models/gemini-2.5-pro", "xhigh", `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-pro", "none", ""},
		{"gemini-3-flash-preview", "minimal", `{"thinkingLevel":"minimal","includeThoughts":true}`},
		{"gemini-3-pro-preview", "medium", `{"thinkingLevel":"high","includeThoughts":true}`},
		{"gemini-3.1-pro-preview", "minimal", `{"thinkingLevel":"low","includeThoughts":true}`},
		{"gemini-3.1-pro-preview", "medium", `{"thinkingLevel":"medium","includeThoughts":true}`},
		{"gemini-flash-latest", "high", `{"thinkingLevel":"high","includeThoughts":true}`},
		{"gemini-flash-latest", "none", ""},
		{"gemini-2.0-flash", "low", ""},
		{"gemma-3-27b-it", "low", ""},
	} {
		g := newGuest(t, `{}`)
		g.Model = c.model
		s, e := g.Request(`{` + hello + `,"reasoning_effort":"` + c.effort + `"}`)
		if c.want == "" {
			require.NotNil(t, e, "%v", c)
			require.Equal(t, interlock.CodeUnsupportedParameter, e.Code)
			require.Equal(t, "reasoning_effort", e.Param)
			continue
		}
		require.Nil(t, e, "%v", c)
		var body struct {
			GenerationConfig struct{ ThinkingConfig json.RawMessage }
		}
		require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
		require.JSONEq(t, c.want, string(body.GenerationConfig.ThinkingConfig), "%v", c)
	}
	g := newGuest(t, `{"include_thoughts":true}`)
	require.Equal(t, object{"thinkingConfig": object{"includeThoughts": true}}, g.Body(hello)["generationConfig"])
	g.Model = "gemini-2.0-flash"
	require.NotContains(t, g.Body(hello+`,"reasoning_effort":"none"`), "generationConfig")
}

func TestRefused(t *testing.T) {
	user := func(part string) string { return `"messages":[{"role":"user","content":[` + part + `]}]` }
	for members, param := range map[string]string{
		hello + `,"logprobs":true`:                   "logprobs",
		hello + `,"logit_bias":{"1":1}`:              "logit_bias",
		hello + `,"verbosity":"low"`:                 "verbosity",
		hello + `,"prediction":{}`:                   "prediction",
		hello + `,"web_search_options":{}`:           "web_search_options",
		hello + `,"modalities":["text","audio"]`:     "modalities",
		hello + `,"store":true`:                      "store",
		hello + `,"service_tier":"scale"`:            "service_tier",
		hello + `,"top_k":3`:                         "top_k",
		hello + `,"gemini":{"contents":[]}`:          "gemini.contents",
		hello + `,"gemini":{"systemInstruction":{}}`: "gemini.systemInstruction",
		hello + `,"tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":false`: "parallel_tool_calls",
		user(`{"type":"file","file":{"file_id":"file-1"}}`):                                          "messages[0].content[0]",
		user(`{"type":"image_url","image_url":{"url":"relative.png"}}`):                              "messages[0].content[0]",
	} {
		_, e := newGuest(t, `{}`).Request(`{` + members + `}`)
		require.NotNil(t, e, members)
		require.Equal(t, interlock.CodeUnsupportedParameter, e.Code, members)
		require.Equal(t, param, e.Param, members)
	}
	for members, param := range map[string]string{
		hello + `,"gemini":[]`:                                                                        "gemini",
		hello + `,"gemini":{"tools":{}}`:                                                              "gemini.tools",
		hello + `,"gemini":{"generationConfig":1}`:                                                    "gemini.generationConfig",
		hello + `,"gemini":{"toolConfig":{"functionCallingConfig":1}}`:                                "gemini.functionCallingConfig",
		hello + `,"reasoning_effort":"much"`:                                                          "reasoning_effort",
		user(`{"type":"file","file":{"file_data":"AAAA"}}`):                                           "messages[0].content[0]",
		`"messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":"a"}]`: "messages[1].tool_call_id",
		`"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"[1]"}}]}]`: "messages[1].tool_calls[0].function.arguments",
		`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","provider_data":[{"provider":"gemini","type":"text","signature":1}]}]`:     "messages[1].provider_data",
	} {
		_, e := newGuest(t, `{}`).Request(`{` + members + `}`)
		require.NotNil(t, e, members)
		require.Equal(t, interlock.CodeBadRequest, e.Code, members)
		require.Equal(t, param, e.Param, members)
	}
	for _, key := range []string{"$ref", "allOf", "not"} {
		_, e := newGuest(t, `{"schema":"openapi"}`).Request(`{` + hello + `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"properties":{"x":{"` + key + `":{}}}}}}}`)
		require.NotNil(t, e)
		require.Equal(t, "response_format.json_schema.schema", e.Param)
		require.Contains(t, e.Message, key)
	}
}

// A model of the third generation refuses a call without a signature; one that another provider's
// model made has none.
func TestCallsOfAnotherProvider(t *testing.T) {
	const asked = `"messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":"Let me see","reasoning_content":"secret","provider_data":[{"provider":"anthropic","type":"thinking","signature":"theirs","reasoning_bytes":6}],
		 "tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"t1","content":"1"},{"role":"tool","tool_call_id":"t2","content":"2"}]`
	for model, signature := range map[string]string{"gemini-2.5-pro": ``, "gemini-3.5-flash": `,"thoughtSignature":"skip_thought_signature_validator"`} {
		g := newGuest(t, `{}`)
		g.Model = model
		s, e := g.Request(`{` + asked + `}`)
		require.Nil(t, e)
		require.JSONEq(t, `{"contents":[
			{"role":"user","parts":[{"text":"a"}]},
			{"role":"model","parts":[{"text":"Let me see"},{"functionCall":{"name":"f","args":{}}`+signature+`},{"functionCall":{"name":"g","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"1"}}},{"functionResponse":{"name":"g","response":{"result":"2"}}}]}
		]}`, s.Body)
	}
}

// A signature whose text has changed, or is too large to be here, stands behind the text.
func TestSignatureOfAnotherText(t *testing.T) {
	for _, content := range []string{`"Let"`, `[{"type":"text","text":"Let me"},{"type":"text","text":" see"}]`, `"interlock:blob:xyz"`, `"éééééé"`} {
		s, e := newGuest(t, `{}`).Request(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":` + content + `,"provider_data":[
			{"provider":"gemini","type":"text","signature":"s","text_start":7,"text_bytes":14,"calls":0}]}]}`)
		require.Nil(t, e)
		require.Contains(t, s.Body, `,{"text":"","thoughtSignature":"s"}]}`)
	}
}

func TestMedia(t *testing.T) {
	body := newGuest(t, `{}`).Body(`"messages":[{"role":"user","content":[
		{"type":"image_url","image_url":{"url":"https://a.example/b.PNG?x=.pdf"}},
		{"type":"image_url","image_url":{"url":"https://a.example/b"}},
		{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},
		{"type":"file","file":{"filename":"a.mp4","file_data":"interlock:blob:abc"},"videoMetadata":{"fps":1}},
		{"type":"file","file":{"file_id":"files/abc","filename":"a.pdf"}},
		{"type":"file","file":{"file_id":"gs://b/c.txt"}}]}]`)
	text, err := json.Marshal(body["contents"])
	require.NoError(t, err)
	require.JSONEq(t, `[{"role":"user","parts":[
		{"fileData":{"fileUri":"https://a.example/b.PNG?x=.pdf","mimeType":"image/png"}},
		{"fileData":{"fileUri":"https://a.example/b"}},
		{"inlineData":{"mimeType":"audio/wav","data":"AA"}},
		{"inlineData":{"mimeType":"video/mp4","data":"interlock:blob:abc"},"videoMetadata":{"fps":1}},
		{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc","mimeType":"application/pdf"}},
		{"fileData":{"fileUri":"gs://b/c.txt","mimeType":"text/plain"}}]}]`, string(text))
}

func TestSystemWords(t *testing.T) {
	g := newGuest(t, `{}`)
	g.Model = "gemma-3-27b-it"
	body := g.Body(`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]`)
	require.NotContains(t, body, "systemInstruction")
	require.Equal(t, []any{object{"role": "user", "parts": []any{object{"text": "Be brief."}, object{"text": "Hi"}}}}, body["contents"])
}

func TestToolChoice(t *testing.T) {
	const tools = hello + `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for choice, want := range map[string]any{
		``:                          nil,
		`,"tool_choice":"auto"`:     object{"functionCallingConfig": object{"mode": "AUTO"}},
		`,"tool_choice":"none"`:     object{"functionCallingConfig": object{"mode": "NONE"}},
		`,"tool_choice":"required"`: object{"functionCallingConfig": object{"mode": "ANY"}},
		`,"tool_choice":"required","gemini":{"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","streamFunctionCallArguments":true},"retrievalConfig":{}}}`: object{
			"functionCallingConfig": object{"mode": "VALIDATED", "streamFunctionCallArguments": true}, "retrievalConfig": object{},
		},
	} {
		require.Equal(t, want, newGuest(t, `{}`).Body(tools + choice)["toolConfig"], choice)
	}
	require.NotContains(t, newGuest(t, `{}`).Body(hello+`,"tool_choice":"none"`), "toolConfig")
}

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter", "RECITATION": "content_filter", "BLOCKLIST": "content_filter",
		"PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter", "IMAGE_SAFETY": "content_filter", "LANGUAGE": "content_filter",
		"OTHER": "stop", "MALFORMED_FUNCTION_CALL": "stop", "UNEXPECTED_TOOL_CALL": "stop", "A_NEW_ONE": "stop",
	} {
		text, f, e := newGuest(t, `{}`).Whole("", []byte(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"`+reason+`"}]}`))
		require.Nil(t, f)
		require.Nil(t, e)
		require.Equal(t, want, plugintest.ReadWhole(t, text).Finish, reason)
	}
	for _, empty := range []string{`{}`, `{"candidates":[]}`, `{"candidates":[{"content":{}}]}`, `[]`, `{"candidates":[{"index":1000}]}`} {
		_, f, e := newGuest(t, `{}`).Whole("", []byte(empty))
		require.Nil(t, f)
		require.NotNil(t, e, empty)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
}

func TestFailureClasses(t *testing.T) {
	for _, c := range []struct {
		status              int
		kind, message, want string
	}{
		{400, "INVALID_ARGUMENT", "The input token count (1500000) exceeds the maximum number of tokens allowed (1048576).", interlock.ContextOverflow},
		{400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", interlock.UpstreamAuth},
		{400, "INVALID_ARGUMENT", "* GenerateContentRequest.contents: contents is not specified", interlock.ClientInvalid},
		{400, "FAILED_PRECONDITION", "User location is not supported for the API use.", interlock.UpstreamAuth},
		{401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", interlock.UpstreamAuth},
		{403, "PERMISSION_DENIED", "Permission denied", interlock.UpstreamAuth},
		{404, "NOT_FOUND", "Publisher Model `projects/p/locations/l/publishers/google/models/x` was not found", interlock.ModelUnavailable},
		{404, "NOT_FOUND", "Requested entity was not found.", interlock.ClientInvalid},
		{429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later.", interlock.RateLimited},
		{500, "INTERNAL", "An internal error has occurred.", interlock.ServerError},
		{503, "UNAVAILABLE", "The model is overloaded.", interlock.Overloaded},
		{504, "DEADLINE_EXCEEDED", "The request timed out.", interlock.Timeout},
		{499, "CANCELLED", "The operation was cancelled.", interlock.ServerError},
		{429, "", "", interlock.RateLimited},
		{500, "", "", ""},
	} {
		body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, c.status, c.message, c.kind)
		f := newGuest(t, `{}`).Classify(c.status, nil, []byte(body))
		require.Equal(t, c.want, f.Class, body)
		require.Equal(t, c.kind, f.Type)
		require.Equal(t, c.message, f.Message)
		require.Zero(t, f.Status)
	}
	f := newGuest(t, `{}`).Classify(503, map[string]string{"retry-after": "2"}, []byte("<html>"))
	require.Equal(t, &interlock.Failure{Class: interlock.Overloaded, RetryAfter: 2000, HasRetryAfter: true}, f)
}

func TestRetryDelay(t *testing.T) {
	for delay, want := range map[string]int{
		"34.4s": 34400, "0s": 0, "1.0000001s": 1001, "0.5s": 500, "7.12s": 7120, "0.999s": 999,
		"": -1, "s": -1, "5": -1, "-1s": -1, "1.2.3s": -1, ".5s": -1, "99999999999999999999s": -1, "xs": -1,
	} {
		body := `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}]}}`
		f := newGuest(t, `{}`).Classify(429, nil, []byte(body))
		require.Equal(t, want >= 0, f.HasRetryAfter, delay)
		require.EqualValues(t, max(want, 0), f.RetryAfter, delay)
	}
}

// What belongs to nobody is passed over, and nothing that follows a stream's end is lost.
func TestUnknownChunks(t *testing.T) {
	p := newGuest(t, `{}`).PlayData("", []string{
		``, `{"somethingNew":{}}`, `{"candidates":[{"content":{"parts":[{"text":"a"},{"somethingNew":1}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`, `{"usageMetadata":{"promptTokenCount":1}}`, `[DONE]`,
	}, plugintest.Apart)
	require.Nil(t, p.Failure)
	require.True(t, p.Done)
	m := plugintest.Assemble(t, p.Chunks)
	require.Equal(t, "ab", m.Text)
	require.EqualValues(t, 1, m.Usage.Prompt)

	p = newGuest(t, `{}`).PlayData("", []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"cand`}, plugintest.Apart)
	require.Equal(t, interlock.MalformedAnswer, p.Failure.Class)
	require.Len(t, p.Chunks, 1)
}

// An event of a steady stream allocates nothing.
func TestEventsAllocateNothing(t *testing.T) {
	g := newGuest(t, `{}`)
	g.Stream = true
	chunk := `{"candidates":[{"content":{"parts":[{"text":"some words"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":13,"candidatesTokenCount":8},"modelVersion":"m","responseId":"r"}`
	input := func(state string) []byte {
		w := interlock.Writer(g.Context())
		w.Str(state)
		w.Bool(false)
		w.U32(1)
		w.Str("")
		w.Str(chunk)
		return w
	}
	out, failed := g.G.Call(interlock.OpEvents, input(""), nil)
	require.False(t, failed)
	r := interlock.NewReader(out)
	r.U32()
	in := input(strings.Clone(r.Str()))
	dst := make([]byte, 0, 4<<10)
	require.Zero(t, testing.AllocsPerRun(100, func() { g.G.Call(interlock.OpEvents, in, dst) }))
}
