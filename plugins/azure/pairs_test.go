package azure_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

type object = map[string]any

// configOf is the configuration that a recorded path speaks of, and the deployment in it.
func configOf(t *testing.T, path string) (config, deployment string) {
	below, query, _ := strings.Cut(path, "?")
	version := strings.TrimPrefix(query, "api-version=")
	switch {
	case strings.HasPrefix(below, "/openai/v1/"):
		require.Empty(t, query)
		return `{}`, ""
	case strings.HasPrefix(below, "/openai/deployments/"):
		deployment, _, _ = strings.Cut(strings.TrimPrefix(below, "/openai/deployments/"), "/")
		return `{"api":"deployments","api_version":"` + version + `"}`, deployment
	}
	require.True(t, strings.HasPrefix(below, "/models/"), path)
	if version != "" {
		return `{"api":"models","api_version":"` + version + `"}`, ""
	}
	return `{"api":"models"}`, ""
}

// own checks that a body which was sent to Azure goes there unchanged, but for the model's name and
// the usage of streams, which is always asked for.
func own(t *testing.T, endpoint, path string, body object, query bool) {
	config, deployment := configOf(t, path)
	g := newGuest(t, config)
	g.Endpoint = endpoint
	g.Stream = body["stream"] == true
	if g.Model = deployment; deployment == "" {
		g.Model = body["model"].(string)
	}
	text, err := json.Marshal(body)
	require.NoError(t, err)
	s, refused := g.Request(string(text))
	require.Nil(t, refused, "%s", text)
	if !query {
		s.Path, _, _ = strings.Cut(s.Path, "?")
	}
	require.Equal(t, path, s.Path)
	require.Empty(t, s.Header)
	require.Equal(t, "application/json", s.ContentType)
	var got object
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	require.Equal(t, g.Model, got["model"])
	body["model"] = g.Model
	if g.Stream && endpoint == "chat_completions" && !strings.Contains(path, "2024-02-01") {
		require.Equal(t, object{"include_usage": true}, got["stream_options"])
		delete(got, "stream_options")
		delete(body, "stream_options")
	}
	require.Equal(t, body, got)
}

// Every recorded request of Azure, sent by way of the adapter, is the same again: path and body.
func TestRecordedRequests(t *testing.T) {
	compared := 0
	eachRecording(t, func(t *testing.T, at string, m meta) {
		text, err := os.ReadFile(filepath.Join(at, "request.json"))
		if err != nil {
			t.Skip("the request was not recorded")
		}
		compared++
		var body object
		require.NoError(t, json.Unmarshal(text, &body))
		for key, v := range body {
			if v == nil {
				delete(body, key) // asks for nothing
			}
		}
		if m.Endpoint == "embeddings" && strings.Contains(m.Path, "2023-07-01") {
			delete(body, "encoding_format") // too young for that version; the gateway renders it
		}
		own(t, endpoints[m.Endpoint].name, m.Path, body, true)
	})
	require.Equal(t, 26, compared)
}

// speakers are whose request of the same conversation is taken, the first that there is.
var speakers = []string{
	"openrouter-chat_completions.json", "deepseek-chat_completions.json", "mistral-chat_completions.json", // ruby_llm
	"OpenAI-openai-gpt-5-chat_completions.json", "OpenAI-openai-o4-mini-chat_completions.json", // fantasy
	"openai-embeddings.json",
}

// listeners are whose request it is compared with, all that there are.
var listeners = []string{
	"azure-chat_completions.json", "azure-embeddings.json",
	"Azure-azure-gpt-5-mini-chat_completions.json", "Azure-azure-o4-mini-chat_completions.json",
}

type pair struct {
	URL  string
	Body object
}

func readPair(t *testing.T, dir string, files ...string) (p pair, ok bool) {
	for _, f := range files {
		if b, err := os.ReadFile(filepath.Join(dir, f)); err == nil {
			require.NoError(t, json.Unmarshal(b, &p))
			return p, true
		}
	}
	return p, false
}

// TestRequestPairs translates what a library sends to another speaker of OpenAI's format, and
// compares it with what it sends to Azure in the same conversation; and it sends the latter again.
func TestRequestPairs(t *testing.T) {
	conversations, err := filepath.Glob(filepath.Join(plugintest.Cases(t, "azure"), "request_pairs", "*", "*"))
	require.NoError(t, err)
	compared, again := 0, 0
	for _, dir := range conversations {
		for _, file := range listeners {
			want, ok := readPair(t, dir, file)
			if !ok {
				continue
			}
			endpoint := "chat_completions"
			if strings.Contains(file, "embed") {
				endpoint = "embeddings"
			}
			again++
			t.Run(filepath.Base(dir)+"/again/"+file, func(t *testing.T) {
				var copied object
				text, err := json.Marshal(want.Body)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &copied))
				own(t, endpoint, want.URL, copied, false)
			})
			from, ok := readPair(t, dir, speakers...)
			if !ok || unlike[filepath.Base(dir)] != "" {
				continue
			}
			compared++
			t.Run(filepath.Base(dir)+"/"+file, func(t *testing.T) {
				config, _ := configOf(t, want.URL)
				g := newGuest(t, config)
				g.Endpoint, g.Model, g.Stream = endpoint, want.Body["model"].(string), want.Body["stream"] == true
				delete(from.Body, "usage")     // OpenRouter's own
				delete(from.Body, "reasoning") // OpenRouter's own
				text, err := json.Marshal(from.Body)
				require.NoError(t, err)
				s, refused := g.Request(string(text))
				require.Nil(t, refused, "%s", text)
				var got object
				require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
				require.Equal(t, plain(want.Body), plain(got))
			})
		}
	}
	require.Equal(t, []int{50, 60}, []int{compared, again})
}

// unlike says why a pair is not compared.
var unlike = map[string]string{
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1":             "the tool answers in other words",
	"chat_multimodal_tool_attachments_describes_images_returned_from_tools.1":                 "the library names the call's ID in a text of its own",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":                        "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":                        "another tool is declared",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":                         "the library names the call's ID in a text of its own",
	"chat_vision_models_can_understand_remote_images_without_extension.1":                     "the library fetches the image; the adapter leaves that to the provider",
	"chat_with_extended_thinking_preserves_thinking_signatures_between_turns_when_provided.0": "only Azure is asked for an effort",
	"chat_with_extended_thinking_preserves_thinking_signatures_between_turns_when_provided.1": "only Azure is asked for an effort",
	"chat_with_extended_thinking_returns_thinking_when_available.0":                           "only Azure is asked for an effort",
	"chat_with_extended_thinking_streams_thinking_content_when_available.0":                   "only Azure is asked for an effort",
}

// plain is a request without what two recordings of one conversation do not share: what the models
// said, the IDs they made up, and a member that the library adds to schemas.
func plain(body object) object {
	if text, ok := body["input"].(string); ok {
		body["input"] = []any{text}
	}
	tools, _ := body["tools"].([]any)
	for _, tool := range tools {
		if schema, ok := tool.(object)["function"].(object)["parameters"].(object); ok {
			delete(schema, "strict")
		}
	}
	list, _ := body["messages"].([]any)
	for _, m := range list {
		m := m.(object)
		delete(m, "tool_call_id")
		if m["role"] == "assistant" {
			delete(m, "content")
			for _, k := range []string{"reasoning", "reasoning_details"} {
				delete(m, k) // OpenRouter's own
			}
		}
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			delete(c.(object), "id")
			delete(c.(object), "index")
			f := c.(object)["function"].(object)
			var args any
			if json.Unmarshal([]byte(f["arguments"].(string)), &args) == nil {
				f["arguments"] = args
			}
		}
	}
	return body
}
