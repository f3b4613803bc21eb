package anthropic_test

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

// pair is a conversation as one library says it to two providers.
type pair struct{ ours, theirs []string }

var suites = map[string]pair{
	"ruby_llm": {
		ours:   []string{"anthropic-messages.json"},
		theirs: []string{"openrouter-chat_completions.json", "azure-chat_completions.json"},
	},
	"fantasy": {
		ours:   []string{"Anthropic-claude-sonnet-4-messages.json"},
		theirs: []string{"OpenAI-openai-gpt-4o-chat_completions.json"},
	},
}

// unlike says why a pair is not compared: what the library says to the two providers differs in
// more than the format.
var unlike = map[string]string{
	"chat_citations_cites_text_documents_in_responses.0":                          "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.0":              "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.1":              "no request in OpenAI's format",
	"chat_citations_streams_citations.0":                                          "no request in OpenAI's format",
	"chat_multimodal_tool_attachments_describes_images_returned_from_tools.1":     "the image follows the tool's result as the user's, behind a text of the library's own",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":             "the attachment follows the tool's result as the user's",
	"chat_pdf_models_handles_multiple_pdfs.1":                                     "another conversation",
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1": "the tools answer in other words",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":            "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":            "another tool is declared",
	"object_complex_object.0":                                                     "asks by a tool of its own: compared in TestSchemaAsATool",
	"object_complex_object_streaming.0":                                           "asks by a tool of its own: compared in TestSchemaAsATool",
	"object_simple_object.0":                                                      "asks by a tool of its own: compared in TestSchemaAsATool",
	"object_simple_object_streaming.0":                                            "asks by a tool of its own: compared in TestSchemaAsATool",
}

type object = map[string]any

func eachPair(t *testing.T, compare func(t *testing.T, name string, want, body object)) (count int) {
	root := filepath.Join(plugintest.Cases(t, "anthropic"), "request_pairs")
	for suite, files := range suites {
		entries, err := os.ReadDir(filepath.Join(root, suite))
		require.NoError(t, err)
		for _, e := range entries {
			want, ok := pairBody(t, filepath.Join(root, suite, e.Name()), files.ours)
			if !ok {
				continue
			}
			count++
			t.Run(e.Name(), func(t *testing.T) {
				body, _ := pairBody(t, filepath.Join(root, suite, e.Name()), files.theirs)
				compare(t, e.Name(), want, body)
			})
		}
	}
	return count
}

// TestRequestPairs translates what a library sends to a speaker of OpenAI's format, and compares
// it with what it sends to Anthropic in the same conversation.
func TestRequestPairs(t *testing.T) {
	left := 0
	count := eachPair(t, func(t *testing.T, name string, want, body object) {
		if why := unlike[name]; why != "" {
			left++
			t.Skip(why)
		}
		require.NotNil(t, body)
		if _, thinks := want["thinking"]; thinks {
			// OpenRouter has its own parameter for it, and another's words for the reasoning.
			body["reasoning_effort"] = "minimal"
			signed(list(body["messages"]), list(want["messages"]))
		}
		delete(body, "reasoning")
		s, got := translate(t, `{"max_tokens":64000}`, want, body)
		require.Equal(t, "/v1/messages", s.Path)
		require.Equal(t, []string{"anthropic-version: 2023-06-01"}, s.Header)
		require.Equal(t, plain(t, want), plain(t, got))
	})
	require.Equal(t, len(unlike), left)
	require.Equal(t, 77, count)
}

// TestSchemaAsATool compares the library that asks for an object by a forced tool with the
// adapter's own way of doing so.
func TestSchemaAsATool(t *testing.T) {
	compared := 0
	eachPair(t, func(t *testing.T, name string, want, body object) {
		if !strings.HasPrefix(name, "object_") {
			return
		}
		compared++
		_, got := translate(t, `{"structured_output":"tool"}`, want, body)
		tool := list(want["tools"])[0]
		tool["name"] = "structured_answer" // theirs is the schema's
		want["tool_choice"].(object)["name"] = "structured_answer"
		closed(tool["input_schema"])
		require.Equal(t, plain(t, want), plain(t, got))
	})
	require.Equal(t, 4, compared)
}

// closed closes every object, as the library does for OpenAI only.
func closed(v any) {
	o, _ := v.(object)
	if o["type"] == "object" {
		o["additionalProperties"] = false
	}
	for _, v := range o {
		closed(v)
	}
}

func translate(t *testing.T, config string, want, body object) (s plugintest.Sent, got object) {
	text, err := json.Marshal(body)
	require.NoError(t, err)
	g := newGuest(t, config)
	g.Model, _ = want["model"].(string)
	g.Stream = want["stream"] == true
	s, refused := g.Request(string(text))
	require.Nil(t, refused, "%s", text)
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	return s, got
}

// signed gives the caller's messages the thinking that the provider's have.
func signed(to, from []object) {
	for i, m := range from {
		for _, b := range list(m["content"]) {
			if b["type"] == "thinking" {
				to[i]["reasoning_content"] = b["thinking"]
				to[i]["provider_data"] = []any{object{
					"provider": "anthropic", "type": "thinking",
					"reasoning_bytes": len(b["thinking"].(string)), "signature": b["signature"],
				}}
			}
		}
	}
}

func pairBody(t *testing.T, dir string, files []string) (object, bool) {
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			continue
		}
		var p struct{ Body object }
		require.NoError(t, json.Unmarshal(b, &p))
		return p.Body, true
	}
	return nil, false
}

// plain is a request without what two recordings of one conversation do not share (what the model
// said and the IDs it made up) and without what means the same.
func plain(t *testing.T, body object) string {
	ids := map[any]string{}
	id := func(o object, key string) {
		if ids[o[key]] == "" {
			ids[o[key]] = fmt.Sprintf("id-%d", len(ids))
		}
		o[key] = ids[o[key]]
	}
	if s, ok := body["system"].(string); ok {
		body["system"] = []any{object{"type": "text", "text": s}}
	}
	for _, m := range list(body["messages"]) {
		if s, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": s}}
		}
		var kept []any
		for _, b := range list(m["content"]) {
			switch b["type"] {
			case "text":
				if m["role"] == "assistant" { // one says something before a call, another does not
					continue
				}
			case "tool_use":
				id(b, "id")
				b["input"] = "said"
			case "tool_result":
				id(b, "tool_use_id")
				if b["is_error"] == false {
					delete(b, "is_error")
				}
				if s, ok := b["content"].(string); ok {
					b["content"] = []any{object{"type": "text", "text": s}}
				}
				for _, c := range list(b["content"]) {
					if text, _ := c["text"].(string); strings.HasPrefix(text, "Current weather at") {
						c["text"] = "weather" // at the place that the model said
					}
				}
			case "document":
				delete(b, "title") // the library keeps a file's name to itself
			}
			kept = append(kept, b)
		}
		m["content"] = kept
	}
	if c, ok := body["tool_choice"].(object); ok {
		if c["disable_parallel_tool_use"] == false { // the default
			delete(c, "disable_parallel_tool_use")
		}
		if c["type"] == "auto" && len(c) == 1 {
			delete(body, "tool_choice")
		}
	}
	for _, tool := range list(body["tools"]) {
		if tool["description"] == "" {
			delete(tool, "description")
		}
		if schema, ok := tool["input_schema"].(object); ok {
			delete(schema, "strict") // the library says it to the one only
		}
	}
	if body["stream"] == false {
		delete(body, "stream")
	}
	text, err := json.MarshalIndent(body, "", " ")
	require.NoError(t, err)
	return string(text)
}

func list(v any) (all []object) {
	items, _ := v.([]any)
	for _, i := range items {
		if o, ok := i.(object); ok {
			all = append(all, o)
		}
	}
	return all
}
