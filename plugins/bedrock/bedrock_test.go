package bedrock_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/bedrock"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"Hello"}]`

func TestReasoningEffort(t *testing.T) {
	for _, c := range []struct{ config, model, members, want string }{
		{`{}`, "anthropic.claude-3-7-sonnet-20250219-v1:0", `"reasoning_effort":"low"`, `{"thinking":{"type":"enabled","budget_tokens":2048}}`},
		{`{}`, "us.anthropic.claude-sonnet-4-20250514-v1:0", `"reasoning_effort":"xhigh"`, `{"thinking":{"type":"enabled","budget_tokens":32768}}`},
		{`{}`, "eu.anthropic.claude-opus-4-5-20251101-v1:0", `"reasoning_effort":"medium","max_tokens":1100`, `{"thinking":{"type":"enabled","budget_tokens":1024}}`},
		{`{"max_tokens":5000}`, "eu.anthropic.claude-opus-4-5-20251101-v1:0", `"reasoning_effort":"medium"`, `{"thinking":{"type":"enabled","budget_tokens":4744}}`},
		{`{}`, "eu.anthropic.claude-opus-4-5-20251101-v1:0", `"reasoning_effort":"none"`, ``},
		{`{}`, "us.anthropic.claude-opus-4-6-v1", `"reasoning_effort":"xhigh"`, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}}`},
		{`{}`, "us.anthropic.claude-opus-4-8", `"reasoning_effort":"xhigh"`, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}}`},
		{`{}`, "anthropic.claude-opus-5", `"reasoning_effort":"minimal"`, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{`{}`, "anthropic.claude-mythos-preview", `"reasoning_effort":"high"`, `{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{`{}`, "us.amazon.nova-2-lite-v1:0", `"reasoning_effort":"high"`, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}`},
		{`{}`, "qwen.qwen3-32b-v1:0", `"reasoning_effort":"high"`, `{"reasoning_config":"high"}`},
		{`{}`, "openai.gpt-oss-120b-1:0", `"reasoning_effort":"minimal"`, `{"reasoning_effort":"low"}`},
		{`{"reasoning":"nova"}`, "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", `"reasoning_effort":"low"`, `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}}`},
	} {
		t.Run(c.model+c.members, func(t *testing.T) {
			g := newGuest(t, c.config)
			g.Model = c.model
			s, e := g.Request(`{` + hello + `,` + c.members + `}`)
			require.Nil(t, e)
			var body map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
			require.Equal(t, c.want, string(body["additionalModelRequestFields"]))
		})
	}
}

func TestRefused(t *testing.T) {
	user := func(part string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]`
	}
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct{ model, body, code, param string }{
		{"", hello + `,"seed":1`, interlock.CodeUnsupportedParameter, "seed"},
		{"", hello + `,"n":2`, interlock.CodeUnsupportedParameter, "n"},
		{"", hello + `,"logprobs":true`, interlock.CodeUnsupportedParameter, "logprobs"},
		{"", hello + `,"frequency_penalty":0.5`, interlock.CodeUnsupportedParameter, "frequency_penalty"},
		{"", hello + `,"web_search_options":{}`, interlock.CodeUnsupportedParameter, "web_search_options"},
		{"", hello + `,"top_k":5`, interlock.CodeUnsupportedParameter, "top_k"},
		{"", hello + `,"service_tier":"scale"`, interlock.CodeUnsupportedParameter, "service_tier"},
		{"", hello + `,"bedrock":[]`, interlock.CodeBadRequest, "bedrock"},
		{"", hello + `,"bedrock":{"messages":[]}`, interlock.CodeUnsupportedParameter, "bedrock.messages"},
		{"", hello + `,"bedrock":{"toolConfig":{"tools":{}}}`, interlock.CodeBadRequest, "bedrock.toolConfig.tools"},
		{"", hello + `,"bedrock":{"guardrailConfig":{}}`, interlock.CodeUnsupportedParameter, "bedrock.guardrailConfig"},
		{"", hello + `,"reasoning_effort":"much"`, interlock.CodeBadRequest, "reasoning_effort"},
		{"", hello + `,"reasoning_effort":"low","max_tokens":1024`, interlock.CodeBadRequest, "max_completion_tokens"},
		{"meta.llama3-2-1b-instruct-v1:0", hello + `,"reasoning_effort":"low"`, interlock.CodeUnsupportedParameter, "reasoning_effort"},
		{"anthropic.claude-v2:1", hello + `,"reasoning_effort":"none"`, interlock.CodeUnsupportedParameter, "reasoning_effort"},
		{"amazon.nova-lite-v1:0", hello + `,"reasoning_effort":"low"`, interlock.CodeUnsupportedParameter, "reasoning_effort"},
		{"openai.gpt-oss-20b-1:0", hello + `,"reasoning_effort":"none"`, interlock.CodeUnsupportedParameter, "reasoning_effort"},
		{"amazon.nova-lite-v1:0", hello + tools + `,"parallel_tool_calls":false`, interlock.CodeUnsupportedParameter, "parallel_tool_calls"},
		{"", user(`{"type":"image_url","image_url":{"url":"https://a.b/c.png"}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1].image_url.url"},
		{"", user(`{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA=="}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1]"},
		{"", user(`{"type":"file","file":{"file_id":"file-1"}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1].file.file_id"},
		{"", user(`{"type":"file","file":{"filename":"a.zip","file_data":"AA=="}}`), interlock.CodeUnsupportedParameter, "messages[0].content[1]"},
		{"", `"messages":[{"role":"user","content":" \n\t"}]`, interlock.CodeBadRequest, "messages[0].content"},
		{"", `"messages":[{"role":"system","content":"a"}]`, interlock.CodeBadRequest, "messages"},
		{"", `"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"[1]"}}]}]` + tools, interlock.CodeBadRequest, "messages[0].tool_calls[0].function.arguments"},
		{"", `"messages":[{"role":"assistant","content":"a","provider_data":[{"provider":"bedrock","vendor":"anthropic","type":"reasoning"}]}]`, interlock.CodeBadRequest, "messages[0].provider_data"},
	} {
		t.Run(c.param, func(t *testing.T) {
			g := newGuest(t, `{"guardrail_config":{"guardrailIdentifier":"g"}}`)
			if c.model != "" {
				g.Model = c.model
			}
			_, e := g.Request(`{` + c.body + `}`)
			require.NotNil(t, e)
			require.Equal(t, c.code, e.Code, "%v", e)
			require.Equal(t, c.param, e.Param)
		})
	}
}

func TestToolChoice(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	const format = `,"response_format":{"type":"json_object"}`
	for _, c := range []struct{ members, choice, fields string }{
		{``, ``, ``},
		{`,"tool_choice":"auto"`, ``, ``},
		{`,"tool_choice":"required"`, `{"any":{}}`, ``},
		{`,"tool_choice":{"type":"function","function":{"name":"f"}}`, `{"tool":{"name":"f"}}`, ``},
		{format, `{"any":{}}`, ``},
		{format + `,"tool_choice":"none"`, `{"tool":{"name":"structured_answer"}}`, ``},
		{format + `,"tool_choice":"required"`, `{"any":{}}`, ``},
		{`,"parallel_tool_calls":false`, ``, `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		{`,"parallel_tool_calls":false,"tool_choice":"required"`, `{"any":{}}`, `{"tool_choice":{"disable_parallel_tool_use":true}}`},
		{`,"bedrock":{"toolConfig":{"toolChoice":{"auto":{}}}}`, `{"auto":{}}`, ``},
	} {
		t.Run(c.members, func(t *testing.T) {
			s, e := newGuest(t, "{}").Request(`{` + hello + tools + c.members + `}`)
			require.Nil(t, e)
			var body struct {
				ToolConfig struct{ ToolChoice json.RawMessage }
				Additional json.RawMessage `json:"additionalModelRequestFields"`
			}
			require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
			require.Equal(t, c.choice, string(body.ToolConfig.ToolChoice))
			require.Equal(t, c.fields, string(body.Additional))
		})
	}
}

// The provider refuses IDs that others make up; a call and its result keep the same one.
func TestStrangeIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"call_1", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 65) + "b", "a b", "a/b", `a\"b`, "é"} {
		s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"` + id +
			`","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"r"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
		require.Nil(t, e)
		var body struct {
			Messages []struct {
				Content []struct {
					ToolUse, ToolResult struct{ ToolUseID string }
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
		call, result := body.Messages[1].Content[0].ToolUse.ToolUseID, body.Messages[2].Content[0].ToolResult.ToolUseID
		require.Equal(t, call, result)
		require.Regexp(t, `^[a-zA-Z0-9_.:-]{1,64}$`, call)
		require.False(t, seen[call], "two IDs became one")
		seen[call] = true
		if id == "call_1" {
			require.Equal(t, id, call)
		}
	}
}

func TestNamesOfDocuments(t *testing.T) {
	var parts []string
	for _, n := range []string{"a.pdf", "a.pdf", "a.pdf", "a (2).pdf", ".pdf", "ééé.pdf", "  x\\ty  .pdf", strings.Repeat("n", 300) + ".pdf"} {
		parts = append(parts, `{"type":"file","file":{"filename":"`+n+`","file_data":"data:application/pdf;base64,AA=="}}`)
	}
	s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"user","content":[` + strings.Join(parts, ",") + `]}]}`)
	require.Nil(t, e)
	var body struct {
		Messages []struct {
			Content []struct{ Document struct{ Name string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.Body), &body))
	seen := map[string]bool{}
	for _, b := range body.Messages[0].Content {
		n := b.Document.Name
		require.Regexp(t, `^[a-zA-Z0-9()\[\]-]+( [a-zA-Z0-9()\[\]-]+)*$`, n)
		require.LessOrEqual(t, len(n), 200)
		require.False(t, seen[n], n)
		seen[n] = true
	}
}

// A large string comes as a handle, and has to stay a string of its own.
func TestHandles(t *testing.T) {
	const handle = "interlock:blob:abcdef"
	s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + handle +
		`"}},{"type":"file","file":{"filename":"a.pdf","file_data":"` + handle + `"}}]},` +
		`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"` + handle + `"}]}`)
	require.Nil(t, e)
	require.Equal(t, 3, strings.Count(s.Body, `"`+handle+`"`))
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status            int
		kind, body, class string
	}{
		{400, "ValidationException:http://x/", `{"message":"1 validation error detected"}`, interlock.ClientInvalid},
		{400, "", `{"message":"Input is too long for requested model."}`, interlock.ContextOverflow},
		{400, "ValidationException", `{"message":"Invocation of model ID a with on-demand throughput isn’t supported."}`, interlock.ModelUnavailable},
		{403, "AccessDeniedException", `{"Message":"You don't have access to the model with the specified model ID."}`, interlock.ModelUnavailable},
		{403, "AccessDeniedException", `{"Message":"User is not authorized to perform: bedrock:InvokeModel"}`, interlock.UpstreamAuth},
		{403, "ExpiredTokenException", `{"message":"The security token included in the request is expired"}`, interlock.UpstreamAuth},
		{404, "ResourceNotFoundException", `{"message":"a"}`, interlock.ModelUnavailable},
		{408, "ModelTimeoutException", `{"message":"a"}`, interlock.Timeout},
		{424, "ModelErrorException", `{"message":"a","originalStatusCode":429}`, interlock.RateLimited},
		{424, "ModelErrorException", `{"message":"a","originalStatusCode":400}`, interlock.ServerError},
		{429, "ModelNotReadyException", `{"message":"a"}`, interlock.Overloaded},
		{429, "", `<html>`, interlock.RateLimited},
		{500, "InternalServerException", ``, interlock.ServerError},
		{503, "", `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"a"}`, interlock.Overloaded},
		{400, "", `{"type":"ValidationException","message":"The provided request is not valid"}`, interlock.ClientInvalid},
		{400, "", `{"type":"ValidationException","message":"Input is too long for requested model."}`, interlock.ContextOverflow},
		{400, "", `{"Type":"com.amazon.coral.validate#ThrottlingException:http://internal.amazon.com/","Message":"a"}`, interlock.RateLimited},
		{400, "", `{"code":"ValidationException","message":"a"}`, interlock.ClientInvalid},
		{400, "", `{"type":"error","message":"Input is too long for requested model."}`, interlock.ContextOverflow},
		{502, "", `<html>`, ""},
		{418, "TeapotException", `{}`, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.kind, c.body), func(t *testing.T) {
			f := newGuest(t, "{}").Classify(c.status, map[string]string{"x-amzn-errortype": c.kind}, []byte(c.body))
			require.Equal(t, c.class, f.Class)
			require.Zero(t, f.Status)
			require.NotContains(t, f.Type, ":")
		})
	}
}

func TestStreamWithoutAnEndIsNotWhole(t *testing.T) {
	g := newGuest(t, "{}")
	start := interlock.Frame{Name: "messageStart", Data: []byte(`{"role":"assistant"}`)}
	text := interlock.Frame{Name: "contentBlockDelta", Data: []byte(`{"contentBlockIndex":0,"delta":{"text":"a"}}`)}
	stop := interlock.Frame{Name: "messageStop", Data: []byte(`{"stopReason":"end_turn"}`)}
	every := func(int) bool { return true }
	require.False(t, g.Play("", []interlock.Frame{start, text}, every).Done)
	p := g.Play("", []interlock.Frame{start, text, stop}, every)
	require.True(t, p.Done)
	require.Nil(t, plugintest.Assemble(t, p.Chunks).Usage)
	p = g.Play("", []interlock.Frame{start, {Name: "contentBlockDelta", Data: []byte(`{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}`)}}, every)
	require.Equal(t, interlock.MalformedAnswer, p.Failure.Class)
}

func TestWholeAnswerWithoutAMessageIsMalformed(t *testing.T) {
	for _, body := range []string{``, `[]`, `{}`, `{"output":{}}`, `{"output":{"message":{"content":[]}}}`, `{"message":"no"}`} {
		_, f, e := newGuest(t, "{}").Whole("", []byte(body))
		require.Nil(t, f)
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code)
	}
}

func TestConfig(t *testing.T) {
	for _, config := range []string{
		`[]`, `{"max_tokens":0}`, `{"max_tokens":"1"}`, `{"reasoning":"much"}`, `{"structured_output":""}`, `{"guardrail_config":1}`, `{"region":"us-east-1"}`,
	} {
		_, err := bedrock.New([]byte(config))
		require.Error(t, err, config)
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	g := newGuest(t, "{}")
	g.Stream = true
	input := func(state string) []byte {
		w := interlock.Writer(g.Context())
		w.Str(state)
		w.Bool(false)
		w.U32(2)
		for _, data := range []string{
			`{"contentBlockIndex":0,"delta":{"text":"some text"},"p":"abcdefghijkl"}`,
			`{"contentBlockIndex":0,"delta":{"text":"\n more"},"p":"abc"}`,
		} {
			w.Str("contentBlockDelta")
			w.Str(data)
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
