package cohere_test

import (
	"encoding/base64"
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
	"chat_basic_chat_functionality_replaces_previous_system_messages_by_default.1":     "what the system says stands in the middle there, and comes first here",
	"chat_citations_cites_text_documents_in_responses.0":                               "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.0":                   "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.1":                   "no request in OpenAI's format",
	"chat_citations_streams_citations.0":                                               "no request in OpenAI's format",
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1":      "the tools answer in other words",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":                 "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":                 "another tool is declared, and answers with an image",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":                  "the attachment follows the tool's result as the user's",
	"embedding_basic_functionality_can_handle_a_single_text_with_custom_dimensions.0":  "another size is asked for",
	"embedding_basic_functionality_can_handle_multiple_texts_with_custom_dimensions.0": "another size is asked for",
}

// pairs is how many conversations the library has with Cohere.
const pairs = 60

// TestRequestPairs translates what a library sends to a speaker of OpenAI's format, and compares
// it with what it sends to Cohere in the same conversation.
func TestRequestPairs(t *testing.T) {
	dir := filepath.Join(plugintest.Cases(t, "cohere"), "request_pairs", "ruby_llm")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found, compared := 0, 0
	for _, e := range entries {
		want, ok := pairBody(t, filepath.Join(dir, e.Name()), "cohere-chat_v2.json", "cohere-embed_v2.json")
		if !ok {
			continue
		}
		found++
		if unlike[e.Name()] != "" {
			continue
		}
		body, ok := pairBody(t, filepath.Join(dir, e.Name()), speakers...)
		require.True(t, ok, e.Name())
		compared++
		t.Run(e.Name(), func(t *testing.T) {
			if want["thinking"] != nil { // OpenRouter's own parameter says it there
				body["reasoning_effort"] = "high"
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
	path := "/v2/chat"
	if body["input"] != nil {
		g.Endpoint, path = "embeddings", "/v2/embed"
	}
	s, refused := g.Request(string(text))
	require.Nil(t, refused, "%s", text)
	require.Equal(t, path, s.Path)
	require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
	return got
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
// models said and the IDs they made up) and without what means the same: the defaults, and a text
// in a list.
func plain(t *testing.T, body object) string {
	ids := map[any]string{}
	id := func(o object, key string) {
		if ids[o[key]] == "" {
			ids[o[key]] = fmt.Sprintf("id-%d", len(ids))
		}
		o[key] = ids[o[key]]
	}
	for _, m := range list(body["messages"]) {
		if s, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": s}}
		}
		var kept []any
		for _, p := range list(m["content"]) {
			if m["role"] == "assistant" { // one says something before a call, another does not
				continue
			}
			if text, _ := p["text"].(string); strings.HasPrefix(text, "Current weather at") {
				p["text"] = "weather" // at the place that the model said
			}
			kept = append(kept, p)
		}
		m["content"] = kept
		delete(m, "tool_plan")
		for _, c := range list(m["tool_calls"]) {
			id(c, "id")
			c["function"].(object)["arguments"] = "said"
		}
		if m["role"] == "tool" {
			id(m, "tool_call_id")
		}
	}
	for _, tool := range list(body["tools"]) {
		delete(tool["function"].(object)["parameters"].(object), "strict") // the library says it to the one only
	}
	for key, usual := range map[string]any{"stream": false, "truncate": nil, "max_tokens": nil, "output_dimension": nil} {
		if v, ok := body[key]; ok && v == usual {
			delete(body, key)
		}
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
		require.Equal(t, refereed(t, want), refereed(t, got))
	})
	require.Equal(t, 4, without)
	require.Equal(t, recordings-without, compared)
}

// refereed is plain without what the provider takes for the same: names of documents, data in them
// that is one text, and the usual type of embeddings.
func refereed(t *testing.T, body object) string {
	if types, ok := body["embedding_types"].([]any); ok && len(types) == 1 && types[0] == "float" {
		delete(body, "embedding_types")
	}
	document := func(d object) {
		delete(d, "id")
		data := d["data"].(object)
		if text := data["output"]; text != nil {
			d["data"] = object{"text": text}
		}
		delete(data, "url")
	}
	for _, d := range list(body["documents"]) {
		document(d)
	}
	for _, m := range list(body["messages"]) {
		for _, p := range list(m["content"]) {
			if d, ok := p["document"].(object); ok {
				document(d)
			}
		}
	}
	return plain(t, body)
}

// asOpenAI says a request of Cohere's in OpenAI's format.
func asOpenAI(t *testing.T, file []byte) object {
	var from object
	require.NoError(t, json.Unmarshal(file, &from))
	to, own := object{"model": "m"}, object{}
	for key, v := range from {
		theirs, known := map[string]string{
			"model": "", "stream": "", "messages": "", "documents": "", "embedding_types": "", "tools": "tools", "temperature": "temperature",
			"stop_sequences": "stop", "texts": "input", "output_dimension": "dimensions", "response_format": "", "tool_choice": "",
		}[key]
		switch {
		case !known:
			own[key] = v
		case theirs != "":
			to[theirs] = v
		}
	}
	if f, ok := from["response_format"].(object); ok {
		to["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "n", "schema": f["json_schema"]}}
	}
	var messages []any
	for _, m := range list(from["messages"]) {
		var parts []any
		for _, p := range list(m["content"]) {
			if d, ok := p["document"].(object); ok {
				p = textFile(d)
			}
			parts = append(parts, p)
		}
		if parts != nil {
			m["content"] = parts
		}
		if plan, ok := m["tool_plan"]; ok {
			m["provider_data"] = []any{object{"provider": "cohere", "type": "tool_plan", "text": plan}}
			delete(m, "tool_plan")
		}
		messages = append(messages, m)
	}
	if messages != nil {
		to["messages"] = messages
		last := messages[len(messages)-1].(object)
		for _, d := range list(from["documents"]) {
			last["content"] = append(last["content"].([]any), textFile(d))
		}
	}
	if len(own) > 0 {
		to["cohere"] = own
	}
	return to
}

// textFile is a document as a file of text.
func textFile(d object) object {
	data := d["data"].(object)
	text, _ := data["text"].(string)
	if output, ok := data["output"].(string); ok {
		text = output
	}
	file := object{"file_data": "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text))}
	if title, ok := data["title"]; ok {
		file["filename"] = title
	}
	return object{"type": "file", "file": file}
}
