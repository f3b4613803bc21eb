package mistral_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// speakers are whose request of the same conversation is taken, the first that there is: they
// are OpenAI's format with little of their own.
var speakers = []string{
	"openrouter-chat_completions.json", "azure-chat_completions.json", "deepseek-chat_completions.json", "openai-embeddings.json",
}

// unlike says why a pair is not compared: what the library says to the two providers differs in
// more than the format.
var unlike = map[string]string{
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1":         "the one model calls the tool once, the other three times",
	"chat_multimodal_tool_attachments_describes_images_returned_from_tools.1":             "the image follows the tool's result as the user's, behind a text with the call's ID in it",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":                    "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":                    "another tool is declared",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":                     "the attachment follows the tool's result as the user's, behind a text with the call's ID in it",
	"chat_tool_choice_and_calls_control_respects_choice_required_for_unrelated_queries.0": "the library names the tool to the one only",
}

// pairs is how many conversations both sides have.
const pairs = 53

// TestRequestPairs translates what a library sends to a speaker of OpenAI's format, and compares
// it with what it sends to Mistral in the same conversation.
func TestRequestPairs(t *testing.T) {
	dir := filepath.Join(plugintest.Cases(t, "mistral"), "request_pairs", "ruby_llm")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found, compared := 0, 0
	for _, e := range entries {
		want, ok := pairBody(t, filepath.Join(dir, e.Name()), "mistral-chat_completions.json", "mistral-embeddings.json")
		if !ok {
			continue
		}
		found++
		body, ok := pairBody(t, filepath.Join(dir, e.Name()), speakers...)
		require.True(t, ok, e.Name())
		if unlike[e.Name()] != "" {
			continue
		}
		compared++
		t.Run(e.Name(), func(t *testing.T) {
			if want["reasoning_effort"] != nil { // OpenRouter's own parameter says it there
				body["reasoning_effort"] = want["reasoning_effort"]
				thoughtful(list(body["messages"]), list(want["messages"]))
			}
			require.Equal(t, plain(t, want), plain(t, translate(t, want, body)))
		})
	}
	require.Equal(t, pairs, found)
	require.Equal(t, pairs-len(unlike), compared)
}

func translate(t *testing.T, want, body object) (got object) {
	text, err := json.Marshal(body)
	require.NoError(t, err)
	g := newGuest(t, "{}")
	g.Model, _ = want["model"].(string)
	g.Stream = want["stream"] == true
	path := "/v1/chat/completions"
	if body["input"] != nil {
		g.Endpoint, path = "embeddings", "/v1/embeddings"
	}
	s, refused := g.Request(string(text))
	require.Nil(t, refused, "%s", text)
	require.Equal(t, path, s.Path)
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	return got
}

// thoughtful gives the caller's messages the reasoning that the provider's have.
func thoughtful(to, from []object) {
	for i, m := range from {
		for _, p := range list(m["content"]) {
			if p["type"] == "thinking" {
				said := list(p["thinking"])[0]["text"].(string)
				to[i]["reasoning_content"] = said
				to[i]["provider_data"] = []any{object{"provider": "mistral", "type": "thinking", "reasoning_bytes": len(said)}}
			}
		}
	}
}

func pairBody(t *testing.T, dir string, files ...string) (object, bool) {
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			continue
		}
		var pair struct{ Body object }
		require.NoError(t, json.Unmarshal(b, &pair))
		delete(pair.Body, "usage")     // OpenRouter's own
		delete(pair.Body, "reasoning") // OpenRouter's own
		return pair.Body, true
	}
	return nil, false
}

// plain is a request without what two recordings of one conversation do not share (what the
// models said and the IDs they made up) and without what means the same: the defaults, one input
// in a list, an image's URL in an object, a text in a list.
func plain(t *testing.T, body object) string {
	ids := map[any]string{}
	id := func(o object, key string) {
		if ids[o[key]] == "" {
			ids[o[key]] = fmt.Sprintf("id-%d", len(ids))
		}
		o[key] = ids[o[key]]
	}
	var messages []any
	for _, m := range list(body["messages"]) {
		if s, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": s}}
		}
		if calls, ok := m["tool_calls"].([]any); ok && len(calls) == 0 {
			delete(m, "tool_calls")
		}
		if parts := list(m["content"]); m["role"] == "assistant" && len(parts) == 1 && parts[0]["text"] == "OK" && m["tool_calls"] == nil {
			continue // between a tool's message and the user's, where one library has it too
		}
		var kept []any
		for _, p := range list(m["content"]) {
			if p["type"] == "text" && m["role"] == "assistant" { // one says something before a call, another does not
				continue
			}
			if p["type"] == "thinking" { // a block for each text, or one for all
				for _, said := range list(p["thinking"]) {
					kept = append(kept, said["text"])
				}
				continue
			}
			if url, ok := p["image_url"].(string); ok {
				p["image_url"] = object{"url": url}
			}
			if sound, ok := p["input_audio"].(object); ok {
				p["input_audio"] = sound["data"]
			}
			kept = append(kept, p)
		}
		m["content"] = kept
		for _, c := range list(m["tool_calls"]) {
			id(c, "id")
			delete(c, "index")
			c["function"].(object)["arguments"] = "said"
		}
		if m["role"] == "tool" {
			id(m, "tool_call_id")
			delete(m, "name") // the library does not say whose result it is
			if p := kept[0].(object); strings.HasPrefix(p["text"].(string), "Current weather at") {
				p["text"] = "weather" // at the place that the model said
			}
		}
		if m["prefix"] == false {
			delete(m, "prefix")
		}
		messages = append(messages, m)
	}
	if messages != nil {
		body["messages"] = messages
	}
	for _, tool := range list(body["tools"]) {
		f := tool["function"].(object)
		tool["type"] = "function"
		delete(f["parameters"].(object), "strict")
		if f["description"] == "" {
			delete(f, "description")
		}
	}
	for key, usual := range map[string]any{"stream": false, "n": 1.0, "top_p": 1.0, "tool_choice": "auto"} {
		if body[key] == usual {
			delete(body, key)
		}
	}
	if s, ok := body["input"].(string); ok {
		body["input"] = []any{s}
	}
	text, err := json.MarshalIndent(body, "", " ")
	require.NoError(t, err)
	return string(text)
}

// TestRecordedRequests says the recorded requests in OpenAI's format, by rules of the test's own,
// and compares what comes of them with the recorded ones.
func TestRecordedRequests(t *testing.T) {
	compared, without := 0, 0
	eachRecording(t, func(t *testing.T, at string, _ meta) {
		file, err := os.ReadFile(filepath.Join(at, "request.json"))
		if err != nil {
			without++
			t.Skip("no request was recorded")
		}
		compared++
		var want object
		require.NoError(t, json.Unmarshal(file, &want))
		got := translate(t, want, asOpenAI(t, file))
		require.Equal(t, plain(t, want), plain(t, got))
	})
	require.Equal(t, 2, without)
	require.Equal(t, recordings-without, compared)
}

// asOpenAI says a request of Mistral's in OpenAI's format.
func asOpenAI(t *testing.T, file []byte) (body object) {
	require.NoError(t, json.Unmarshal(file, &body))
	if body["tool_choice"] == "any" {
		body["tool_choice"] = "required"
	}
	for _, m := range list(body["messages"]) {
		delete(m, "prefix")
		var kept []any
		for _, p := range list(m["content"]) {
			if p["type"] != "thinking" {
				kept = append(kept, p)
				continue
			}
			var data []any
			reasoning := ""
			for _, said := range list(p["thinking"]) {
				text := said["text"].(string)
				reasoning += text
				data = append(data, object{"provider": "mistral", "type": "thinking", "reasoning_bytes": len(text)})
			}
			m["reasoning_content"], m["provider_data"] = reasoning, data
		}
		if kept != nil {
			m["content"] = kept
		}
	}
	return body
}
