package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// translators are the recorded providers with a format of their own, and the adapter for it. Azure's
// is OpenAI's with something beside it.
var translators = map[string]string{
	"anthropic": "anthropic", "vertex-anthropic": "anthropic",
	"gemini": "gemini", "vertex-gemini": "gemini",
	"bedrock": "bedrock",
	"azure":   "azure",
	"ollama":  "ollama",
	"cohere":  "cohere",
	"mistral": "mistral",
}

// foreign are the recordings of those providers that are in another format, by endpoint: how many
// there are, and why no adapter reads them. None is of Google's OpenAI-compatible endpoint.
var foreign = map[string]struct {
	count int
	why   string
}{
	"bedrock invoke":                      {8, "InvokeModel speaks each vendor's own format"},
	"bedrock invoke-with-response-stream": {6, "InvokeModelWithResponseStream speaks each vendor's own format"},
	"bedrock responses":                   {3, "the OpenAI-compatible endpoint needs no adapter"},
	"bedrock chat.completions":            {2, "the OpenAI-compatible endpoint needs no adapter"},
	"bedrock models":                      {1, "a list of models"},
	"ollama chat.completions":             {9, "the OpenAI-compatible endpoint needs no adapter"},
	"gemini models":                       {1, "a list of models"},
	"cohere chat.v1":                      {8, "version 1 has another format"},
	"cohere embed.v1":                     {2, "version 1 has another format"},
	"cohere models":                       {3, "a list of models"},
	"cohere rerank.v1":                    {1, "OpenAI's format has no reranking"},
	"cohere rerank.v2":                    {3, "OpenAI's format has no reranking"},
}

// translatedErrors are the classes of the recorded errors.
var translatedErrors = map[string]string{
	"anthropic/pai_model_name_suggestions_model_name_suggestion_anthropic_0":                                             "model_unavailable",
	"anthropic/reported_529_overloaded":                                                                                  "overloaded",
	"anthropic/rubyllm_chat_real_error_scenarios_anthropic_claude_haiku_4_5_handles_context_length_exceeded_errors_0":    "context_overflow",
	"azure/openllmetry_azure_chat_reasoning_1":                                                                           "model_unavailable",
	"azure/openllmetry_embeddings_azure_openai_embeddings_2":                                                             "upstream_auth",
	"azure/reported_400_content_filter":                                                                                  "content_filtered",
	"azure/rubyllm_chat_real_error_scenarios_azure_grok_4_1_fast_non_reasoning_handles_context_length_exceeded_errors_0": "rate_limited",
	"gemini/crewai_testcrewmultimodalgemini.test_image_file_gemini_gemini_1.5_flash_0":                                   "model_unavailable",
	"gemini/pai_embeddings_testgoogle.test_embed_error_0":                                                                "model_unavailable",
	"gemini/pai_model_name_suggestions_model_name_suggestion_google_0":                                                   "model_unavailable",
	"gemini/rubyllm_chat_error_handling_with_gemini_gemini_2_5_flash_raises_appropriate_auth_error_0":                    "upstream_auth",
	"gemini/rubyllm_chat_real_error_scenarios_gemini_gemini_2_5_flash_handles_context_length_exceeded_errors_0":          "rate_limited",
	"gemini/vercel_google_429_retry_info_json":                                                                           "rate_limited",
	"vertex-gemini/otel_generate_content_invalid_role_0":                                                                 "client_invalid",
	"vertex-gemini/otel_generate_content_invalid_temperature_0":                                                          "client_invalid",
	"cohere/pai_embeddings_testcohere.test_embed_error_0":                                                                "model_unavailable",
	"cohere/rubyllm_chat_error_handling_with_cohere_command_a_03_2025_raises_appropriate_auth_error_0":                   "upstream_auth",
	"cohere/rubyllm_chat_real_error_scenarios_cohere_command_a_03_2025_handles_context_length_exceeded_errors_0":         "context_overflow",
	"bedrock/pai_bedrock_bedrock_streaming_error_0":                                                                      "model_unavailable",
	"bedrock/pai_model_name_suggestions_model_name_suggestion_bedrock_0":                                                 "model_unavailable",
	"bedrock/pai_multimodal_tool_returns_multimodal_tool_return_matrix_direct_uploaded_file_image_bedrock_claude_1":      "client_invalid",
	"bedrock/rubyllm_chat_error_handling_with_bedrock_amazon_nova_2_lite_v1_0_raises_appropriate_auth_error_0":           "upstream_auth",
	"bedrock/rubyllm_chat_real_error_scenarios_bedrock_amazon_nova_2_lite_v1_0_handles_context_length_exceeded_errors_0": "context_overflow",
}

// amended are the expectations that the official client's reading leaves out or has no word for.
var amended = map[string]string{
	"anthropic/vercel_duplicate_message_start": `{"text": "Hello, World!", "finish_reason": "stop", "usage": {"prompt_tokens": 17, "completion_tokens": 227}}`,
	"anthropic/vercel_spliced_message_start":   `{"stream_error": true}`,
	// Streams framed as an array, which come whole where none was asked for.
	"gemini/llmgemini_gemini_nested_model_optional_0":                  `{"text": "{\"name\":\"Bob\",\"employer\":{\"company_name\":\"TechCorp\"}}", "finish_reason": "stop"}`,
	"gemini/llmgemini_gemini_tools_1":                                  `{"tool_calls": [{"name": "pelican_name_generator", "arguments": {}}], "finish_reason": "tool_calls"}`,
	"gemini/llmgemini_gemini_tools_with_gemini_3_thought_signatures_1": `{"text": "5 times 3 is 15.", "finish_reason": "stop"}`,
	// Arguments that come in parts, which the client does not put together.
	"gemini/vercel_google_stream_no_args_tool_call": `{"tool_calls": [{"name": "read_theme", "arguments": {}},
		{"name": "read_screen", "arguments": {"id": "A"}}, {"name": "read_screen", "arguments": {"id": "B"}}, {"name": "read_screen", "arguments": {"id": "C"}}]}`,
	"gemini/vercel_google_stream_tool_call_array_arguments_missing_terminal_function_call": `{"tool_calls": [{"name": "writeItems", "arguments": {"operations": [
		{"action": "add", "description": "Fresh red apple", "itemid": "apple_001", "price": 0.5},
		{"action": "add", "description": "Ripe yellow banana", "itemid": "banana_001", "price": 0.3}]}}]}`,
	// Too long to stand here; the adapter's own test looks at what is in it.
	"gemini/vercel_google_vertex_stream_tool_call_arguments_nested.1": `{"tool_calls": [{"name": "cookRecipe"}]}`,
	// Text that stands in citationsContent.
	"bedrock/rubyllm_chat_citations_with_bedrock_claude_haiku_4_5_cites_text_documents_in_responses_0": `{"text": "The Ruby programming language was created by Yukihiro Matsumoto in 1993."}`,
}

// Every recording of a provider with a format of its own, through the built binary over sockets,
// translated by the adapter's Wasm module.
func TestRecordingsThroughPlugins(t *testing.T) {
	dir := recordingsFolder(t)
	var all []*recording
	counted := map[string]int{}
	folders := sortedKeys(translators)
	for _, p := range folders {
		found, err := filepath.Glob(filepath.Join(dir, p, "*", "meta.json"))
		require.NoError(t, err)
		require.NotEmpty(t, found, p)
		for _, f := range found {
			r := loadRecording(t, p, filepath.Dir(f))
			if key := p + " " + r.endpoint; foreign[key].count > 0 {
				counted[key]++
				continue
			}
			r.translate(t, translators[p], filepath.Dir(f))
			all = append(all, r)
		}
	}
	for key, f := range foreign {
		require.Equal(t, f.count, counted[key], key)
		t.Logf("%s: %d recordings are left out: %s", key, f.count, f.why)
	}
	playRecordings(t, folders, all)
}

// translate makes the recording one of a chat in OpenAI's format: the caller's request is made for
// the case, since the recorded one is in the provider's.
func (r *recording) translate(t *testing.T, adapter, dir string) {
	t.Helper()
	r.adapter = "plugin:" + adapter
	if adapter == "azure" {
		return // the requests are OpenAI's, as they were recorded
	}
	var meta struct{ Path string }
	b, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &meta))
	for _, before := range []string{"/models/", "/model/"} {
		if _, rest, ok := strings.Cut(meta.Path, before); ok && !strings.HasSuffix(meta.Path, ".yaml") {
			model, _, _ := strings.Cut(strings.NewReplacer(":generate", "|", ":stream", "|", ":batch", "|", "/converse", "|").Replace(rest), "|")
			r.model = strings.NewReplacer("%3A", ":", "%2F", "/").Replace(model)
		}
	}
	if text := amended[r.name]; text != "" {
		var want recordedExpectation
		require.NoError(t, json.Unmarshal([]byte(text), &want), r.name)
		if r.expect == nil {
			r.expect = &recordedExpectation{}
		}
		if want.Text != nil {
			r.expect.Text = want.Text
		}
		if want.ToolCalls != nil {
			r.expect.ToolCalls = want.ToolCalls
		}
		if want.FinishReason != nil {
			r.expect.FinishReason = want.FinishReason
		}
		if want.Usage != nil {
			r.expect.Usage = want.Usage
		}
		r.expect.StreamError = want.StreamError
	}
	if strings.Contains(r.endpoint, "mbed") {
		r.endpoint = "embeddings"
		texts := r.request["texts"] // as many vectors are in the answer
		r.request = madeRequest(r.endpoint, false)
		if texts != nil {
			r.request["input"] = texts
		}
		return
	}
	r.endpoint = "chat.completions"
	r.request = madeRequest(r.endpoint, r.stream)
	var tools []string
	declared := map[string]bool{}
	if r.expect != nil {
		for _, c := range r.expect.ToolCalls {
			if !declared[c.Name] {
				tools = append(tools, `{"type":"function","function":{"name":"`+c.Name+`","parameters":{"type":"object"}}}`)
				declared[c.Name] = true
			}
		}
	}
	if tools != nil {
		r.request["tools"] = json.RawMessage("[" + strings.Join(tools, ",") + "]")
	}
}

// checkTranslatedError checks what a caller gets of a provider's error: its own mistakes as the
// provider words them, everything else as the gateway's.
func checkTranslatedError(t *testing.T, r *recording, a *answer) {
	t.Helper()
	got := readRecordedError(t, a.Body)
	class := translatedErrors[r.name]
	require.NotEmpty(t, class, "an error that this test has no class for: %s", a.Body)
	require.Equal(t, class, got.Interlock.Class, a.Body)
	switch class {
	case "client_invalid", "context_overflow", "content_filtered":
		require.Equal(t, 400, a.Status, a.Body)
		require.Equal(t, "policy_stop", got.Interlock.Terminal)
		message, _, _ := strings.Cut(r.expect.Error.MessageContains, "http") // URLs are redacted
		require.Contains(t, got.Message, message)
		kind, _ := r.expect.Error.Type.(string)
		if kind == "" { // in a header, which a recording may have lost
			kind, _, _ = strings.Cut(text(r.header["x-amzn-errortype"]), ":")
		}
		if kind != "" {
			require.Equal(t, kind, got.Type, a.Body)
		}
	case "rate_limited":
		require.Equal(t, 429, a.Status, a.Body)
		require.Equal(t, "routes_exhausted", got.Code)
		require.NotEmpty(t, a.Header.Get("Retry-After"), "both recorded ones say when")
	default:
		require.Equal(t, 502, a.Status, a.Body)
		require.Equal(t, "routes_exhausted", got.Code)
	}
}

// checkTranslatedBreak checks a failure inside a 200 stream: after output a partial end. Where all
// of it came in one piece nothing had gone out yet, and the attempt has failed as a whole.
func checkTranslatedBreak(t *testing.T, r *recording, a *answer, cut int) {
	t.Helper()
	if a.Status != 200 {
		require.Less(t, cut, 2, "cut into bytes, it had sent output")
		got := readRecordedError(t, a.Body)
		require.Equal(t, "routes_exhausted", got.Code, a.Body)
		require.Contains(t, a.Body, `"phase":"before_output"`)
		require.Contains(t, []string{"overloaded", "malformed_answer"}, got.Interlock.Class)
		return
	}
	h, err := hearStream(a.Body, r.endpoint)
	require.NoError(t, err)
	require.NotNil(t, h.err, a.Body)
	require.Equal(t, "partial_stream", h.err["code"])
	require.Contains(t, h.err["message"], "(request "+a.ID()+")")
	require.False(t, h.done, "no [DONE] after a partial end")
	require.Empty(t, h.finish, "the gateway makes up no finish reason")
	require.NotZero(t, len(h.text)+len(h.reasoning)+len(h.calls), "what was sent before")
}
