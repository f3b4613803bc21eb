package fault

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const everyEvent = `
id "c"
on chat
  role
  reasoning "r"
  text "a"
  text "\"b"
  tool f {"x": 1} id "t" pieces 2
  finish tool_calls
  usage 7 4 cached 3 reasoning 1
  done
`

// TestDialectBytes pins what each dialect makes of every kind of event, as a stream and whole.
func TestDialectBytes(t *testing.T) {
	for name, c := range map[string]struct {
		stream, whole [2]string // path and body
		events        []string
		body          string
	}{
		"anthropic": {
			stream: [2]string{"/v1/messages", `{"model":"m","stream":true}`},
			whole:  [2]string{"/v1/messages", `{"model":"m"}`},
			events: []string{
				`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"c","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
				`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"r"}}`,
				`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":0}`,
				`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`,
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\"b"}}`,
				`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":1}`,
				`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}`,
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}`,
				`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":2}`,
				`event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":4}}`,
				`event: message_stop` + "\n" + `data: {"type":"message_stop"}`,
			},
			body: `{"id":"c","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"r"},{"type":"text","text":"a\"b"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":4}}`,
		},
		"azure": {
			stream: [2]string{"/openai/v1/chat/completions", `{"model":"m","stream":true}`},
			whole:  [2]string{"/openai/deployments/m/chat/completions?api-version=2024-10-21", `{"model":"m"}`},
			events: []string{
				`data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"reasoning_content":"r"},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"content":"\"b"},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"content_filter_results":{},"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`,
				`data: [DONE]`,
			},
			body: `{"id":"c","object":"chat.completion","created":1700000002,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a\"b","reasoning_content":"r","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}},"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`,
		},
		"gemini": {
			stream: [2]string{"/v1beta/models/m:streamGenerateContent?alt=sse", `{}`},
			whole:  [2]string{"/v1beta/models/m:generateContent", `{}`},
			events: []string{
				`data: {"candidates":[{"content":{"parts":[{"text":"r","thought":true}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"c"}`,
				`data: {"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"c"}`,
				`data: {"candidates":[{"content":{"parts":[{"text":"\"b"}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"c"}`,
				`data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"t","name":"f","args":{"x":1}}}],"role":"model"},"index":0}],"modelVersion":"m","responseId":"c"}`,
				`data: {"candidates":[{"content":{"parts":[],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"cachedContentTokenCount":3,"candidatesTokenCount":3,"thoughtsTokenCount":1,"totalTokenCount":11},"modelVersion":"m","responseId":"c"}`,
			},
			body: `{"candidates":[{"content":{"parts":[{"text":"r","thought":true},{"text":"a\"b"},{"functionCall":{"id":"t","name":"f","args":{"x":1}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"cachedContentTokenCount":3,"candidatesTokenCount":3,"thoughtsTokenCount":1,"totalTokenCount":11},"modelVersion":"m","responseId":"c"}`,
		},
		"ollama": {
			stream: [2]string{"/api/chat", `{"model":"m","stream":true}`},
			whole:  [2]string{"/api/chat", `{"model":"m","stream":false}`},
			events: []string{
				`{"model":"m","created_at":"2023-11-14T22:13:21Z","message":{"role":"assistant","content":"","thinking":"r"},"done":false}`,
				`{"model":"m","created_at":"2023-11-14T22:13:21Z","message":{"role":"assistant","content":"a"},"done":false}`,
				`{"model":"m","created_at":"2023-11-14T22:13:21Z","message":{"role":"assistant","content":"\"b"},"done":false}`,
				`{"model":"m","created_at":"2023-11-14T22:13:21Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"t","function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":false}`,
				`{"model":"m","created_at":"2023-11-14T22:13:21Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1000,"prompt_eval_count":7,"prompt_eval_cached_count":3,"eval_count":4}`,
			},
			body: `{"model":"m","created_at":"2023-11-14T22:13:22Z","message":{"role":"assistant","content":"a\"b","thinking":"r","tool_calls":[{"id":"t","function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":true,"done_reason":"stop","total_duration":1000,"prompt_eval_count":7,"prompt_eval_cached_count":3,"eval_count":4}`,
		},
		"bedrock": {
			stream: [2]string{"/model/m/converse-stream", `{}`},
			whole:  [2]string{"/model/m/converse", `{}`},
			events: []string{
				`messageStart {"role":"assistant"}`,
				`contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"r"}}}`,
				`contentBlockStop {"contentBlockIndex":0}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"a"}}`,
				`contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"\"b"}}`,
				`contentBlockStop {"contentBlockIndex":1}`,
				`contentBlockStart {"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}`,
				`contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"x\""}}}`,
				`contentBlockDelta {"contentBlockIndex":2,"delta":{"toolUse":{"input":":1}"}}}`,
				`contentBlockStop {"contentBlockIndex":2}`,
				`messageStop {"stopReason":"tool_use"}`,
				`metadata {"usage":{"inputTokens":4,"cacheReadInputTokens":3,"outputTokens":4,"totalTokens":11},"metrics":{"latencyMs":1}}`,
			},
			body: `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"r"}}},{"text":"a\"b"},{"toolUse":{"toolUseId":"t","name":"f","input":{"x":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":4,"cacheReadInputTokens":3,"outputTokens":4,"totalTokens":11},"metrics":{"latencyMs":1}}`,
		},
		"cohere": {
			stream: [2]string{"/v2/chat", `{"model":"m","stream":true}`},
			whole:  [2]string{"/v2/chat", `{"model":"m"}`},
			events: []string{
				`event: message-start` + "\n" + `data: {"id":"c","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
				`event: content-start` + "\n" + `data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`,
				`event: content-delta` + "\n" + `data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"r"}}}}`,
				`event: content-end` + "\n" + `data: {"type":"content-end","index":0}`,
				`event: content-start` + "\n" + `data: {"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
				`event: content-delta` + "\n" + `data: {"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"a"}}}}`,
				`event: content-delta` + "\n" + `data: {"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"\"b"}}}}`,
				`event: content-end` + "\n" + `data: {"type":"content-end","index":1}`,
				`event: tool-call-start` + "\n" + `data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}`,
				`event: tool-call-delta` + "\n" + `data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"x\""}}}}}`,
				`event: tool-call-delta` + "\n" + `data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":":1}"}}}}}`,
				`event: tool-call-end` + "\n" + `data: {"type":"tool-call-end","index":0}`,
				`event: message-end` + "\n" + `data: {"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":7,"output_tokens":4},"tokens":{"input_tokens":7,"output_tokens":4},"cached_tokens":3}}}`,
				`data: [DONE]`,
			},
			body: `{"id":"c","message":{"role":"assistant","content":[{"type":"thinking","thinking":"r"},{"type":"text","text":"a\"b"}],"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":7,"output_tokens":4},"tokens":{"input_tokens":7,"output_tokens":4},"cached_tokens":3}}`,
		},
		"mistral": {
			stream: [2]string{"/v1/chat/completions", `{"model":"m","stream":true}`},
			whole:  [2]string{"/v1/chat/completions", `{"model":"m"}`},
			events: []string{
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]}]},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"content":"\"b"},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"id":"t","function":{"name":"f","arguments":"{\"x\":1}"},"index":0}]},"finish_reason":null}]}`,
				`data: {"id":"c","object":"chat.completion.chunk","created":1700000001,"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"total_tokens":11,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}`,
				`data: [DONE]`,
			},
			body: `{"id":"c","object":"chat.completion","created":1700000002,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"t","function":{"name":"f","arguments":"{\"x\":1}"},"index":0}],"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},{"type":"text","text":"a\"b"}]}}],"usage":{"prompt_tokens":7,"total_tokens":11,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := script(t, "dialect "+name+everyEvent)
			stream := streamOf(t, p, c.stream[0], c.stream[1])
			switch name {
			case "bedrock":
				require.Equal(t, c.events, messages(t, stream))
			case "ollama":
				require.Equal(t, strings.Join(c.events, "\n")+"\n", stream)
			default:
				require.Equal(t, strings.Join(c.events, "\n\n")+"\n\n", stream)
			}
			whole := ask(t, p, c.whole[0], c.whole[1])
			require.Contains(t, whole, "Content-Type: application/json\r\n")
			require.Equal(t, c.body, bodyOf(whole))
			if name != "mistral" {
				require.Contains(t, ask(t, p, "/v1/chat/completions", chatBody), " 404 ")
			}
			require.Contains(t, ask(t, p, "/v1/responses", chatBody), " 404 ")
		})
	}
}

// messages takes an AWS event stream apart and checks its sums.
func messages(t *testing.T, stream string) (list []string) {
	t.Helper()
	for b := []byte(stream); len(b) > 0; {
		total, head := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		require.Equal(t, crc32.ChecksumIEEE(b[:8]), binary.BigEndian.Uint32(b[8:]))
		require.Equal(t, crc32.ChecksumIEEE(b[:total-4]), binary.BigEndian.Uint32(b[total-4:]))
		h := b[12:]
		size := 1 + int(h[0]) + 3 + int(binary.BigEndian.Uint16(h[2+h[0]:]))
		list = append(list, string(h[4+h[0]:size])+" "+string(b[12+head:total-4]))
		b = b[total:]
	}
	return list
}

// TestDialectErrors pins the errors, by status and inside an answer.
func TestDialectErrors(t *testing.T) {
	for name, c := range map[string]struct{ path, busy, long, inside string }{
		"anthropic": {
			"/v1/messages",
			`{"type":"error","error":{"type":"overloaded_error","message":"Service Unavailable"},"request_id":"req_fault"}`,
			`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: by far"},"request_id":"req_fault"}`,
			`{"type":"error","error":{"type":"rate_limit_error","message":"later"},"request_id":"req_fault"}`,
		},
		"azure": {
			"/openai/v1/chat/completions",
			`{"error":{"code":"NoCapacity","message":"Service Unavailable","type":null}}`,
			`{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is exceeded: by far","type":"invalid_request_error"}}`,
			`{"error":{"code":"429","message":"later","type":null}}`,
		},
		"gemini": {
			"/v1beta/models/m:generateContent",
			`{"error":{"code":503,"message":"Service Unavailable","status":"UNAVAILABLE"}}`,
			`{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed: by far","status":"INVALID_ARGUMENT"}}`,
			`{"error":{"code":429,"message":"later","status":"RESOURCE_EXHAUSTED"}}`,
		},
		"ollama": {
			"/api/chat",
			`{"error":"server busy, please try again.  maximum pending requests exceeded"}`,
			`{"error":"prompt too long; exceeded max context length: by far"}`,
			`{"error":"later"}`,
		},
		"bedrock": {
			"/model/m/converse",
			`{"message":"Service Unavailable"}`,
			`{"message":"Input is too long for requested model: by far"}`,
			`{"message":"later"}`,
		},
		"cohere": {
			"/v2/chat",
			`{"id":"fault","message":"Service Unavailable"}`,
			`{"error_type":"TOO_MANY_TOKENS","id":"fault","message":"too many tokens: by far"}`,
			`{"id":"fault","message":"token rate limit exceeded: later"}`,
		},
		"mistral": {
			"/v1/chat/completions",
			`{"object":"error","message":"Service Unavailable","type":"service_tier_capacity_exceeded","param":null,"code":"3505","raw_status_code":503}`,
			`{"object":"error","message":"Prompt contains 300000 tokens, too large for model with 131072 maximum context length: by far","type":"invalid_request_invalid_args","param":null,"code":"3051","raw_status_code":400}`,
			`{"object":"error","message":"later","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := script(t, "dialect "+name+`
on chat
  once
  status 503
on chat
  once
  status 400 code context_length_exceeded message "by far"
on chat
  error {"type": "rate_limit_error", "message": "later"}
`)
			busy := ask(t, p, c.path, `{"model":"m"}`)
			require.Equal(t, []string{"503", c.busy}, []string{statusOf(busy), bodyOf(busy)})
			require.Equal(t, name == "bedrock", strings.Contains(busy, "x-amzn-errortype: ServiceUnavailableException:"))
			require.Equal(t, c.long, bodyOf(ask(t, p, c.path, `{"model":"m"}`)))
			inside := ask(t, p, c.path, `{"model":"m"}`)
			require.Equal(t, []string{"200", c.inside}, []string{statusOf(inside), bodyOf(inside)})
		})
	}
	p := script(t, "dialect bedrock\non chat\n  error {\"type\": \"rate_limit_error\", \"message\": \"later\"}\n")
	require.Equal(t, []string{`throttlingException {"message":"later"}`}, messages(t, streamOf(t, p, "/model/m/converse-stream", `{}`)))
}

func TestDialectFaults(t *testing.T) {
	for text, want := range map[string]string{
		"dialect latin\n":                                 "allowed: anthropic, azure, bedrock, cohere, gemini, mistral, ollama, openai",
		"on chat\n  status 500\ndialect gemini\n":         "before the first rule",
		"dialect gemini\non chat stream\n  delta {}\n":    "OpenAI's alone",
		"dialect bedrock\non chat stream\n  comment \"\"": "server-sent events",
	} {
		_, errs := Parse("s", text)
		require.Len(t, errs, 1, text)
		require.ErrorContains(t, errs[0], want)
	}
}
