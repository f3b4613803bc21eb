package azure_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/azure"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const hello = `"messages":[{"role":"user","content":"hi"}]`

func TestConfiguration(t *testing.T) {
	for config, path := range map[string]string{
		`{}`:                                                       "/openai/v1/chat/completions",
		`{"api":"v1","api_version":"preview"}`:                     "/openai/v1/chat/completions?api-version=preview",
		`{"api":"v1","api_version":"latest"}`:                      "/openai/v1/chat/completions?api-version=latest",
		`{"api":"v1","api_version":"v1"}`:                          "/openai/v1/chat/completions?api-version=v1",
		`{"api":"models"}`:                                         "/models/chat/completions?api-version=2024-05-01-preview",
		`{"api":"models","api_version":"2025-01-01"}`:              "/models/chat/completions?api-version=2025-01-01",
		`{"api":"deployments","api_version":"2024-10-21"}`:         "/openai/deployments/gpt-5-mini/chat/completions?api-version=2024-10-21",
		`{"api":"deployments","api_version":"2025-04-01-preview"}`: "/openai/deployments/gpt-5-mini/chat/completions?api-version=2025-04-01-preview",
	} {
		s, e := newGuest(t, config).Request(`{` + hello + `}`)
		require.Nil(t, e, config)
		require.Equal(t, path, s.Path, config)
	}
	for config, says := range map[string]string{
		`[]`:                                       "not a JSON object",
		`{"api":"v2"}`:                             "v1, deployments or models",
		`{"api":1}`:                                "v1, deployments or models",
		`{"api_version":"2024-10-21"}`:             "goes with api deployments or models",
		`{"api_version":""}`:                       "not empty",
		`{"api_version":"2024-10-2"}`:              "must be a date",
		`{"api_version":"2024-10-21-beta"}`:        "must be a date",
		`{"api_version":"20x4-10-21"}`:             "must be a date",
		`{"api_version":"2024/10/21"}`:             "must be a date",
		`{"api":"deployments"}`:                    "needs an api_version",
		`{"api":"models","api_version":"preview"}`: "goes with api v1",
		`{"deployment":"x"}`:                       "unknown key",
	} {
		_, err := azure.New([]byte(config))
		require.ErrorContains(t, err, says, config)
	}
}

// Each endpoint has its path in each API.
func TestPaths(t *testing.T) {
	for endpoint, c := range map[string]struct{ body, v1, deployments string }{
		"completions": {`{"prompt":"a"}`, "/openai/v1/completions", "/openai/deployments/d/completions?api-version=2025-04-01-preview"},
		"embeddings":  {`{"input":"a"}`, "/openai/v1/embeddings", "/openai/deployments/d/embeddings?api-version=2025-04-01-preview"},
		"responses":   {`{"input":"a"}`, "/openai/v1/responses", "/openai/responses?api-version=2025-04-01-preview"},
	} {
		for config, path := range map[string]string{`{}`: c.v1, `{"api":"deployments","api_version":"2025-04-01-preview"}`: c.deployments} {
			g := newGuest(t, config)
			g.Endpoint, g.Model = endpoint, "d"
			s, e := g.Request(c.body)
			require.Nil(t, e)
			require.Equal(t, path, s.Path)
		}
		g := newGuest(t, `{"api":"models"}`)
		g.Endpoint, g.Model = endpoint, "d"
		_, e := g.Request(c.body)
		require.Equal(t, endpoint != "embeddings", e != nil, endpoint)
	}
}

func TestRefusals(t *testing.T) {
	for body, param := range map[string]string{
		`{}`:                                      "messages",
		`{"messages":[]}`:                         "messages",
		`{"messages":{}}`:                         "messages",
		`{` + hello + `,"anthropic":{}}`:          "anthropic",
		`{` + hello + `,"data_sources":[]}`:       "data_sources",
		`{` + hello + `,"web_search_options":{}}`: "web_search_options",
		`{` + hello + `,"azure":[]}`:              "azure",
		`{` + hello + `,"azure":{"model":"x"}}`:   "azure.model",
		`{` + hello + `,"azure":{"messages":[]}}`: "azure.messages",
		`{` + hello + `,"azure":{"stream":true}}`: "azure.stream",
		`{"messages":["\u0061",1]}`:               "messages",
	} {
		_, e := newGuest(t, `{}`).Request(body)
		require.NotNil(t, e, body)
		require.Equal(t, param, e.Param, body)
	}
	// What asks for nothing is not refused.
	_, e := newGuest(t, `{}`).Request(`{` + hello + `,"anthropic":null,"azure":null}`)
	require.Nil(t, e)
}

// What the dated versions do not know is written in an older way or left out, from when on each
// has it.
func TestVersions(t *testing.T) {
	body := `{"messages":[{"role":"developer","content":"a"}],"max_completion_tokens":5,"parallel_tool_calls":true,"metadata":{"a":"b"},"prompt_cache_key":"k","store":true,"stream":true}`
	for config, want := range map[string]string{
		`{}`: `{"model":"gpt-5-mini","max_completion_tokens":5,"parallel_tool_calls":true,"metadata":{"a":"b"},"prompt_cache_key":"k","store":true,"stream":true,
			"messages":[{"role":"developer","content":"a"}],"stream_options":{"include_usage":true}}`,
		`{"api":"deployments","api_version":"2024-12-01-preview"}`: `{"model":"gpt-5-mini","max_completion_tokens":5,"parallel_tool_calls":true,"metadata":{"a":"b"},"store":true,"stream":true,
			"messages":[{"role":"developer","content":"a"}],"stream_options":{"include_usage":true}}`,
		`{"api":"deployments","api_version":"2024-10-21"}`: `{"model":"gpt-5-mini","max_completion_tokens":5,"parallel_tool_calls":true,"store":true,"stream":true,
			"messages":[{"role":"system","content":"a"}],"stream_options":{"include_usage":true}}`,
		`{"api":"deployments","api_version":"2024-08-01-preview"}`: `{"model":"gpt-5-mini","max_tokens":5,"store":true,"stream":true,"messages":[{"role":"system","content":"a"}]}`,
		`{"api":"models"}`: `{"model":"gpt-5-mini","max_completion_tokens":5,"parallel_tool_calls":true,"store":true,"stream":true,
			"messages":[{"role":"system","content":"a"}],"stream_options":{"include_usage":true}}`,
	} {
		g := newGuest(t, config)
		g.Stream = true
		s, e := g.Request(body)
		require.Nil(t, e)
		require.JSONEq(t, want, s.Body, config)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status            int
		body, class, code string
	}{
		{400, `{"error":{"code":"content_filter","message":"m","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, interlock.ContentFiltered, "content_filter"},
		{400, `{"error":{"code":null,"message":"m","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, interlock.ContentFiltered, ""},
		{400, `{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"m"}}`, interlock.ContextOverflow, "context_length_exceeded"},
		{400, `{"error":{"code":"unsupported_parameter","type":"invalid_request_error","message":"m","param":"max_tokens"}}`, "", "unsupported_parameter"},
		{400, `{"error":{"code":"OperationNotSupported","message":"m"}}`, "", "OperationNotSupported"},
		{401, `{"error":{"code":"401","message":"m"}}`, interlock.UpstreamAuth, "401"},
		{401, `{"error":{"code":401,"message":"m"}}`, interlock.UpstreamAuth, "401"},
		{401, `{"statusCode":401,"message":"m"}`, "", ""},
		{401, `{"error":{"code":"PermissionDenied","message":"m"}}`, interlock.UpstreamAuth, "PermissionDenied"},
		{403, `{"error":{"code":"AuthenticationTypeDisabled","message":"m"}}`, interlock.UpstreamAuth, "AuthenticationTypeDisabled"},
		{403, `{"error":{"code":"403","message":"m"}}`, "", "403"},
		{404, `{"error":{"code":"DeploymentNotFound","message":"m"}}`, interlock.ModelUnavailable, "DeploymentNotFound"},
		{404, `{"error":{"code":"404","message":"m"}}`, "", "404"},
		{404, `{"error":{"code":"unknown_model","message":"m"}}`, interlock.ModelUnavailable, "unknown_model"},
		{408, `{"error":{"code":"Timeout","message":"m"}}`, interlock.Timeout, "Timeout"},
		{429, `{"error":{"code":"429","message":"m"}}`, interlock.RateLimited, "429"},
		{429, `{"error":{"code":"RateLimitReached","message":"m"}}`, interlock.RateLimited, "RateLimitReached"},
		{429, `{"error":{"code":"NoCapacity","message":"m"}}`, interlock.Overloaded, "NoCapacity"},
		{429, `{"error":{"code":"insufficient_quota","message":"m"}}`, interlock.UpstreamAuth, "insufficient_quota"},
		{500, `{"error":{"code":"InternalServerError","message":"m"}}`, interlock.ServerError, "InternalServerError"},
		{503, `{"error":{"code":"ServiceUnavailable","message":"m"}}`, "", "ServiceUnavailable"},
		{400, `{"error":{"code":"429","message":"m"}}`, "", "429"},
		{400, `{"error":{"code":"server_error","message":"m"}}`, "", "server_error"},
		{500, `{"error":{"code":"content_filter","message":"m"}}`, "", "content_filter"},
		{500, `{"error":"m"}`, "", ""},
		{502, `<html>`, "", ""},
	} {
		f := newGuest(t, "{}").Classify(c.status, nil, []byte(c.body))
		require.Equal(t, c.class, f.Class, c.body)
		require.Equal(t, c.code, f.Code, c.body)
		if c.body[0] == '{' {
			require.Equal(t, "m", f.Message, c.body)
		}
		require.Zero(t, f.Status)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		header map[string]string
		want   uint64
		ok     bool
	}{
		{nil, 0, false},
		{map[string]string{"retry-after": "3", "retry-after-ms": "2500"}, 2500, true},
		{map[string]string{"retry-after": "1", "retry-after-ms": "0"}, 1000, true},
		{map[string]string{"retry-after-ms": "0"}, 0, true},
		{map[string]string{"retry-after": "0"}, 0, true},
	} {
		f := newGuest(t, "{}").Classify(429, c.header, []byte(`{}`))
		require.Equal(t, c.ok, f.HasRetryAfter)
		require.Equal(t, c.want, f.RetryAfter, "%v", c.header)
	}
}

func TestBrokenAnswers(t *testing.T) {
	for endpoint, bodies := range map[string][]string{
		"chat_completions": {``, `[]`, `{}`, `{"choices":1}`, `{"choices":[}`, `{"data":[]}`},
		"embeddings":       {`{}`, `{"choices":[]}`},
		"responses":        {`{}`, `{"choices":[]}`},
	} {
		for _, body := range bodies {
			g := newGuest(t, "{}")
			g.Endpoint = endpoint
			_, f, e := g.Whole("", []byte(body))
			require.Nil(t, f)
			require.NotNil(t, e, body)
			require.Equal(t, interlock.CodeUpstreamMalformed, e.Code, body)
		}
	}
	_, f, _ := newGuest(t, "{}").Whole("", []byte(`{"choices":[],"error":{"code":"429","message":"m"}}`))
	require.Equal(t, &interlock.Failure{Class: interlock.RateLimited, Code: "429", Message: "m", Status: 429}, f)
}

func chunk(rest string) interlock.Frame {
	return interlock.Frame{Data: []byte(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",` + rest + `}`)}
}

func apart(int) bool { return true }

// What a filter says after the answer's end goes along, under the answer's name.
func TestAnnotationAfterTheEnd(t *testing.T) {
	p := newGuest(t, "{}").Play("", []interlock.Frame{
		chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]`),
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`),
		{Data: []byte(`{"id":"","object":"","created":0,"model":"","choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":3}}]}`)},
		{Data: []byte(`[DONE]`)},
	}, apart)
	require.True(t, p.Done)
	require.Len(t, p.Chunks, 3)
	require.JSONEq(t, `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",
		"choices":[{"index":0,"delta":{},"finish_reason":null,"content_filter_offsets":{"check_offset":3}}]}`, p.Chunks[2])
}

// A chunk in which nothing has to change passes byte for byte.
func TestChunksPass(t *testing.T) {
	text := `{ "id":"c","object":"chat.completion.chunk","choices":[ {"index":0,"delta":{"content":"a","new":[1, 2]}} ] , "other":1.50}`
	p := newGuest(t, "{}").Play("", []interlock.Frame{{Data: []byte(text)}}, apart)
	require.Equal(t, []string{text}, p.Chunks)
	require.False(t, p.Done, "a body that ends without its mark is for the gateway to judge")
}

// Calls without arguments get `{}`, each once, in the choice where they are, whatever comes between.
func TestCallsWithoutArguments(t *testing.T) {
	begin := func(choice, index int) interlock.Frame {
		return chunk(`"choices":[{"index":` + strconv.Itoa(choice) + `,"delta":{"tool_calls":[{"index":` + strconv.Itoa(index) +
			`,"id":"i","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]`)
	}
	p := newGuest(t, "{}").Play("", []interlock.Frame{
		begin(0, 0), begin(1, 0), begin(0, 1), begin(0, 2),
		chunk(`"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}]`),
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]`),
		chunk(`"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]`),
		{Data: []byte(`[DONE]`)},
	}, apart)
	require.True(t, p.Done)
	require.Len(t, p.Chunks, 10)
	for i, where := range map[int]string{5: `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,`, 6: `"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,`, 8: `"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,`} {
		require.Contains(t, p.Chunks[i], where)
		require.Contains(t, p.Chunks[i], `"function":{"arguments":"{}"}`)
		require.True(t, strings.HasPrefix(p.Chunks[i], `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",`))
	}
	require.Equal(t, 3, strings.Count(strings.Join(p.Chunks, ""), `"{}"`))
}

func TestStreamsThatFail(t *testing.T) {
	role := chunk(`"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]`)
	for text, want := range map[string]*interlock.Failure{
		`nothing`: {Class: interlock.MalformedAnswer, Message: "an event is not a JSON object"},
		`[]`:      {Class: interlock.MalformedAnswer, Message: "an event is not a JSON object"},
		`{"error":{"code":"NoCapacity","message":"m"}}`:       {Class: interlock.Overloaded, Code: "NoCapacity", Message: "m"},
		`{"error":{"code":"429","message":"m"},"choices":[]}`: {Class: interlock.RateLimited, Code: "429", Message: "m", Status: 429},
		`{"error":"m"}`: {Message: "m"},
	} {
		p := newGuest(t, "{}").Play("", []interlock.Frame{role, {Data: []byte(text)}, role}, apart)
		require.Equal(t, want, p.Failure, text)
		require.Len(t, p.Chunks, 1)
	}
	p := newGuest(t, "{}").Play("", []interlock.Frame{{Name: "error", Data: []byte(`{"message":"m"}`)}}, apart)
	require.Equal(t, &interlock.Failure{Message: "m"}, p.Failure)
}

func TestResponses(t *testing.T) {
	g := newGuest(t, "{}")
	g.Endpoint, g.Stream = "responses", true
	created := interlock.Frame{Name: "response.created", Data: []byte(`{"type":"response.created","response":{"id":"r"}}`)}
	for name, data := range map[string]string{
		"response.completed":  `{"type":"response.completed","response":{"id":"r","status":"completed"}}`,
		"response.incomplete": `{"type":"response.incomplete","response":{"id":"r","status":"incomplete"}}`,
	} {
		p := g.Play("", []interlock.Frame{created, {Name: name, Data: []byte(data)}}, apart)
		require.True(t, p.Done)
		require.Equal(t, []string{string(created.Data), data}, p.Chunks)
		require.Equal(t, []string{"response.created", name}, p.Names)
	}
	for data, want := range map[string]*interlock.Failure{
		`{"type":"error","code":"429","message":"m","param":null}`:                                                {Class: interlock.RateLimited, Code: "429", Message: "m", Status: 429},
		`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}`: {Class: interlock.ServerError, Code: "server_error", Message: "m"},
	} {
		p := g.Play("", []interlock.Frame{created, {Data: []byte(data)}}, apart)
		require.Equal(t, want, p.Failure)
		require.Len(t, p.Chunks, 1)
	}
}

// Large strings do not enter: their handles pass.
func TestMessagesWithHandles(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 100) + `"}}`
	s, e := newGuest(t, "{}").Request(`{"messages":[{"role":"user","content":[` + image + `]},{"role":"assistant","reasoning_content":"x","content":"\ud83d\ude00"}]}`)
	require.Nil(t, e)
	var got struct{ Messages json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	require.Equal(t, `[{"role":"user","content":[`+image+`]},{"role":"assistant","content":"\ud83d\ude00"}]`, string(got.Messages))
}
