package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/anthropic"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hi = `{"messages":[{"role":"user","content":"hi"}]`

func TestConfigIsRefused(t *testing.T) {
	for config, message := range map[string]string{
		`[]`:                             "the configuration is not a JSON object",
		`{"version":""}`:                 "version must be letters, digits, points and dashes",
		`{"version":"a\r\nx: y"}`:        "version must be letters, digits, points and dashes",
		`{"beta":"a"}`:                   "beta must be an array of strings",
		`{"beta":["a,b"]}`:               "beta must be an array of names such as files-api-2025-04-14",
		`{"beta":[1]}`:                   "beta must be an array of names such as files-api-2025-04-14",
		`{"max_tokens":0}`:               "max_tokens must be a whole number above 0",
		`{"max_tokens":"4"}`:             "max_tokens must be a whole number above 0",
		`{"structured_output":"both"}`:   "structured_output must be native or tool",
		`{"reasoning":"much"}`:           "reasoning must be auto, budget, adaptive or none",
		`{"api_key":"sk-ant-something"}`: "unknown key: api_key",
	} {
		_, err := anthropic.New([]byte(config))
		require.Equal(t, interlock.Config(message), err, config)
	}
}

func TestTheConfigurationIsKept(t *testing.T) {
	config := []byte(`{"version":"v-one","beta":["b-one"]}`)
	p, err := anthropic.New(config)
	require.NoError(t, err)
	for i := range config {
		config[i] = 'x'
	}
	var out interlock.Request
	require.NoError(t, p.Request(&interlock.Call{Model: "m"}, []byte(hi+"}"), &out))
	require.Equal(t, []interlock.Field{{Name: "anthropic-version", Value: "v-one"}, {Name: "anthropic-beta", Value: "b-one"}}, out.Header)
}

func TestWhatTheProviderLacksIsRefused(t *testing.T) {
	part := func(p string) string { return `{"messages":[{"role":"user","content":[` + p + `]}]}` }
	tools := `,"tools":[{"function":{"name":"f"}}]`
	for body, param := range map[string]string{
		hi + `,"n":2}`:                           "n",
		hi + `,"seed":1}`:                        "seed",
		hi + `,"presence_penalty":1}`:            "presence_penalty",
		hi + `,"frequency_penalty":1}`:           "frequency_penalty",
		hi + `,"logprobs":true}`:                 "logprobs",
		hi + `,"top_logprobs":2}`:                "top_logprobs",
		hi + `,"logit_bias":{"1":1}}`:            "logit_bias",
		hi + `,"service_tier":"priority"}`:       "service_tier",
		hi + `,"verbosity":"low"}`:               "verbosity",
		hi + `,"modalities":["audio"]}`:          "modalities",
		hi + `,"prediction":{"type":"content"}}`: "prediction",
		hi + `,"web_search_options":{}}`:         "web_search_options",
		hi + `,"store":true}`:                    "store",
		hi + `,"top_k":3}`:                       "top_k",
		hi + `,"temperature":1.5}`:               "temperature",
		hi + `,"stop":["ok"," \n"]}`:             "stop",
		hi + `,"anthropic":{"model":"m"}}`:       "anthropic.model",
		hi + `,"anthropic":{"max_tokens":9}}`:    "anthropic.max_tokens",
		hi + `,"anthropic":{"messages":[]}}`:     "anthropic.messages",
		hi + `,"anthropic":{"stream":true}}`:     "anthropic.stream",
		hi + `,"reasoning_effort":"low","tool_choice":"required"` + tools + `}`:                                     "reasoning_effort",
		hi + `,"reasoning_effort":"low","response_format":{"type":"json_object"}}`:                                  "reasoning_effort",
		part(`{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}`):                                   "messages[0].content[0].type",
		part(`{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA"}}`):                                "messages[0].content[0].image_url.url",
		part(`{"type":"image_url","image_url":{"url":"gs://bucket/a.png"}}`):                                        "messages[0].content[0].image_url.url",
		part(`{"type":"text","text":"a"},{"type":"file","file":{"filename":"a.docx","file_data":"AAAA"}}`):          "messages[0].content[1].file",
		part(`{"type":"file","file":{"filename":"a.txt","file_data":"!!"}}`):                                        "messages[0].content[0].file",
		part(`{"type":"file","file":{"filename":"a.txt","file_data":"/w=="}}`):                                      "messages[0].content[0].file",
		part(`{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,interlock:blob:abc"}}`): "messages[0].content[0].file",
	} {
		_, e := newGuest(t, "{}").Request(body)
		require.NotNil(t, e, body)
		require.Equal(t, []string{interlock.CodeUnsupportedParameter, param}, []string{e.Code, e.Param}, body)
	}
}

func TestBadRequests(t *testing.T) {
	for body, param := range map[string]string{
		`{"messages":[{"role":"system","content":"s"}]}`:    "messages",
		`{"messages":[{"role":"user","content":" \n\t"}]}`:  "messages[0].content",
		`{"messages":[{"role":"user","content":[]}]}`:       "messages[0].content",
		hi + `,"anthropic":[]}`:                             "anthropic",
		hi + `,"anthropic":{"tools":{}}}`:                   "anthropic.tools",
		hi + `,"anthropic":{"system":"s"}}`:                 "anthropic.system",
		hi + `,"anthropic":{"output_config":1}}`:            "anthropic.output_config",
		hi + `,"reasoning_effort":"huge"}`:                  "reasoning_effort",
		hi + `,"reasoning_effort":"low","max_tokens":1024}`: "max_completion_tokens",
		hi[:len(hi)-1] + `,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{]"}}]}]}`:                  "messages[1].tool_calls[0].function.arguments",
		hi[:len(hi)-1] + `,{"role":"assistant","content":"a","provider_data":[{"provider":"anthropic","type":"thinking"}]}]}`:          "messages[1].provider_data",
		hi[:len(hi)-1] + `,{"role":"assistant","content":"a","provider_data":[{"provider":"anthropic","type":"redacted_thinking"}]}]}`: "messages[1].provider_data",
	} {
		_, e := newGuest(t, "{}").Request(body)
		require.NotNil(t, e, body)
		require.Equal(t, []string{interlock.CodeBadRequest, param}, []string{e.Code, e.Param}, body)
	}
}

// body is the provider's request for a caller's.
func body(t *testing.T, config, model, request string) (got object) {
	g := newGuest(t, config)
	g.Model = model
	s, e := g.Request(request)
	require.Nil(t, e, "%s: %v", request, e)
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	return got
}

func TestReasoning(t *testing.T) {
	loop := `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]},
		{"role":"tool","tool_call_id":"a","content":"1"}],"tools":[{"function":{"name":"f"}}]`
	must := hi + `,"tool_choice":"required","tools":[{"function":{"name":"f"}}]`
	const none = "null"
	for _, c := range []struct{ config, model, request, thinking, effort, limit string }{
		{`{}`, "claude-sonnet-4-5", hi + `}`, none, none, "8192"},
		{`{}`, "claude-3-haiku-20240307", hi + `}`, none, none, "4096"},
		{`{"max_tokens":100}`, "claude-3-haiku-20240307", hi + `}`, none, none, "100"},
		{`{}`, "claude-sonnet-4-5", hi + `,"reasoning_effort":"none"}`, none, none, "8192"},
		{`{}`, "claude-3-haiku-20240307", hi + `,"reasoning_effort":"none"}`, none, none, "4096"},
		{`{}`, "claude-sonnet-4-5", hi + `,"reasoning_effort":"minimal"}`, `{"type":"enabled","budget_tokens":1024}`, none, "9216"},
		{`{}`, "claude-3-7-sonnet@20250219", hi + `,"reasoning_effort":"low"}`, `{"type":"enabled","budget_tokens":2048}`, none, "10240"},
		{`{}`, "claude-sonnet-4-20250514", hi + `,"reasoning_effort":"high"}`, `{"type":"enabled","budget_tokens":16384}`, none, "24576"},
		{`{}`, "claude-opus-4-1", hi + `,"reasoning_effort":"xhigh"}`, `{"type":"enabled","budget_tokens":23808}`, none, "32000"},
		{`{"max_tokens":64000}`, "claude-opus-4-5", hi + `,"reasoning_effort":"xhigh"}`, `{"type":"enabled","budget_tokens":32768}`, none, "64000"},
		{`{"max_tokens":500}`, "claude-opus-4-5", hi + `,"reasoning_effort":"minimal"}`, `{"type":"enabled","budget_tokens":1024}`, none, "1524"},
		{`{}`, "claude-opus-4-5", hi + `,"reasoning_effort":"high","max_tokens":5000}`, `{"type":"enabled","budget_tokens":4744}`, none, "5000"},
		{`{}`, "claude-opus-4-5", hi + `,"reasoning_effort":"high","max_tokens":1025}`, `{"type":"enabled","budget_tokens":1024}`, none, "1025"},
		{`{}`, "another-model", hi + `,"reasoning_effort":"low"}`, `{"type":"enabled","budget_tokens":2048}`, none, "10240"},
		{`{}`, "claude-opus-4-6", hi + `,"reasoning_effort":"minimal"}`, `{"type":"adaptive"}`, `"low"`, "8192"},
		{`{}`, "claude-opus-4-6", hi + `,"reasoning_effort":"xhigh"}`, `{"type":"adaptive"}`, `"max"`, "8192"},
		{`{}`, "us.anthropic.claude-opus-4-7-v1:0", hi + `,"reasoning_effort":"xhigh"}`, `{"type":"adaptive","display":"summarized"}`, `"xhigh"`, "8192"},
		{`{}`, "claude-sonnet-5", hi + `,"reasoning_effort":"none"}`, `{"type":"disabled"}`, none, "8192"},
		{`{}`, "claude-sonnet-latest", hi + `,"reasoning_effort":"high"}`, `{"type":"adaptive","display":"summarized"}`, `"high"`, "8192"},
		{`{}`, "claude-sonnet-5", must + `,"reasoning_effort":"high"}`, none, `"high"`, "8192"},
		{`{"reasoning":"adaptive"}`, "another-model", hi + `,"reasoning_effort":"high"}`, `{"type":"adaptive"}`, `"high"`, "8192"},
		{`{"reasoning":"budget"}`, "claude-sonnet-4-6", hi + `,"reasoning_effort":"low"}`, `{"type":"enabled","budget_tokens":2048}`, none, "10240"},
		{`{"reasoning":"auto"}`, "claude-sonnet-4-6", hi + `,"reasoning_effort":"low"}`, `{"type":"adaptive"}`, `"low"`, "8192"},
		// Amid calls that were made without thinking it cannot begin.
		{`{}`, "claude-sonnet-4-5", loop + `,"reasoning_effort":"low"}`, none, none, "8192"},
		{`{}`, "claude-sonnet-4-6", loop + `,"reasoning_effort":"low"}`, `{"type":"adaptive"}`, `"low"`, "8192"},
		{`{}`, "claude-sonnet-4-5", hi + `,"anthropic":{"thinking":{"type":"enabled","budget_tokens":1024}}}`, `{"type":"enabled","budget_tokens":1024}`, none, "8192"},
	} {
		got := body(t, c.config, c.model, c.request)
		at := c.config + " " + c.model + " " + c.request
		for want, v := range map[string]any{c.thinking: got["thinking"], c.limit: got["max_tokens"]} {
			text, err := json.Marshal(v)
			require.NoError(t, err)
			require.JSONEq(t, want, string(text), at)
		}
		config, _ := got["output_config"].(object)
		text, err := json.Marshal(config["effort"])
		require.NoError(t, err)
		require.Equal(t, c.effort, string(text), at)
	}
	for _, c := range []struct{ config, model string }{{`{"reasoning":"none"}`, "claude-sonnet-4-5"}, {`{}`, "claude-3-5-sonnet-20241022"}, {`{}`, "claude-2.1"}} {
		g := newGuest(t, c.config)
		g.Model = c.model
		_, e := g.Request(hi + `,"reasoning_effort":"low"}`)
		require.Equal(t, "reasoning_effort", e.Param, c.model)
	}
}

func TestToolChoice(t *testing.T) {
	tools := hi + `,"tools":[{"function":{"name":"f"}}]`
	for request, want := range map[string]string{
		tools + `}`:                                                                                   `null`,
		tools + `,"tool_choice":"auto"}`:                                                              `{"type":"auto"}`,
		tools + `,"tool_choice":"none"}`:                                                              `{"type":"none"}`,
		tools + `,"tool_choice":"required"}`:                                                          `{"type":"any"}`,
		tools + `,"parallel_tool_calls":true}`:                                                        `null`,
		tools + `,"parallel_tool_calls":false}`:                                                       `{"type":"auto","disable_parallel_tool_use":true}`,
		tools + `,"parallel_tool_calls":false,"tool_choice":"none"}`:                                  `{"type":"none"}`,
		tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}}`:                         `{"type":"tool","name":"f"}`,
		tools + `,"tool_choice":"required","response_format":{"type":"json_object"}}`:                 `{"type":"any"}`,
		hi + `,"tool_choice":"none"}`:                                                                 `null`,
		hi + `,"parallel_tool_calls":false}`:                                                          `null`,
		hi + `,"tools":[],"response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`:       `{"type":"tool","name":"structured_answer"}`,
		hi + `,"response_format":{"type":"json_object"},"anthropic":{"output_config":{"format":{}}}}`: `null`,
	} {
		text, err := json.Marshal(body(t, "{}", "m", request)["tool_choice"])
		require.NoError(t, err)
		require.JSONEq(t, want, string(text), request)
	}
}

func TestTheUserIsNamedWhereOpaque(t *testing.T) {
	for request, want := range map[string]any{
		`"user":"u_1.2-3"`:                          object{"user_id": "u_1.2-3"},
		`"user":"u","safety_identifier":"s"`:        object{"user_id": "s"},
		`"user":"a@example.com"`:                    nil,
		`"user":"+47 123"`:                          nil,
		`"user":""`:                                 nil,
		`"user":"` + strings.Repeat("a", 257) + `"`: nil,
	} {
		require.Equal(t, want, body(t, "{}", "m", hi+","+request+"}")["metadata"], request)
	}
}

// TestOthersDataIsLeftOut: what another provider signed means nothing here, and its reasoning is
// not told again.
func TestOthersDataIsLeftOut(t *testing.T) {
	got := body(t, "{}", "m", hi[:len(hi)-1]+`,{"role":"assistant","content":"a","reasoning_content":"secret","provider_data":[
		{"provider":"bedrock","type":"reasoning","reasoning_bytes":6,"signature":"x"},{"provider":"gemini","data":"y"}]}]}`)
	require.Equal(t, []any{object{"role": "assistant", "content": []any{object{"type": "text", "text": "a"}}}}, got["messages"].([]any)[1:])
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(hi + `}`))
	f.Add([]byte(hi + `,"tools":[{"function":{"name":"f","parameters":{"a":1}}}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"properties":{"a":{"type":"object"}}}}},"reasoning_effort":"low"}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":"aé","reasoning_content":"b","provider_data":[{"provider":"anthropic","type":"thinking","reasoning_bytes":1,"text_bytes":2,"signature":"s"}]}],"anthropic":{"top_k":1}}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.txt","file_data":"aGk="}}]}]}`))
	p, err := anthropic.New([]byte(`{}`))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		out := interlock.Request{}
		err := p.Request(&interlock.Call{Model: "claude-sonnet-4-5", Stream: true}, body, &out)
		if err == nil {
			require.True(t, json.Valid(out.Body), "%s", out.Body)
		}
	})
}

func TestTextFiles(t *testing.T) {
	for file, want := range map[string]string{
		`"filename":"a.json","file_data":"e30="`:                       "{}",
		`"filename":"a.csv","file_data":"YSxi"`:                        "a,b",
		`"file_data":"data:text/x-log;charset=utf-8;base64,YQ"`:        "a",
		`"filename":"a.md","file_data":"YWI"`:                          "ab",
		`"filename":"a.txt","file_data":"8J+Y\ngA=="`:                  "😀",
		`"filename":"a.txt","file_data":"8J-YgA=="`:                    "😀",
		`"filename":"a.txt","file_data":"data:text/plain;base64,w78_"`: "ÿ?",
	} {
		got := body(t, "{}", "m", `{"messages":[{"role":"user","content":[{"type":"file","file":{`+file+`}}]}]}`)
		block := list(list(got["messages"])[0]["content"])[0]
		require.Equal(t, object{"type": "text", "media_type": "text/plain", "data": want}, block["source"], file)
	}
	for _, data := range []string{"A", "AAAAA", "a b=", "=", ""} {
		_, e := newGuest(t, "{}").Request(`{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.txt","file_data":"` + data + `"}}]}]}`)
		require.NotNil(t, e, data)
	}
}

func TestThinkingWithoutItsText(t *testing.T) {
	// The text was changed on the way: what is signed cannot go back, and nothing else is lost.
	got := body(t, "{}", "claude-sonnet-4-5", `{"messages":[{"role":"assistant","content":"é","reasoning_content":"short","provider_data":[
		{"provider":"anthropic","type":"thinking","reasoning_bytes":9,"signature":"a"},
		{"provider":"anthropic","type":"redacted_thinking","text_bytes":1,"calls":7,"data":"b"},
		{"provider":"anthropic","type":"never_heard_of"}]}]}`)
	require.Equal(t, []any{
		object{"type": "redacted_thinking", "data": "b"}, object{"type": "text", "text": "é"},
	}, list(got["messages"])[0]["content"])
}
