package gemini_test

import (
	"encoding/json"
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
	"openrouter-chat_completions.json", "azure-chat_completions.json", "deepseek-chat_completions.json", // ruby_llm
	"OpenAI-openai-gpt-4o-chat_completions.json", // fantasy
	"openai-embeddings.json",
}

// listeners are whose request it is compared with, all that there are.
var listeners = []string{
	"gemini-generateContent.json", "gemini-streamGenerateContent.json", "vertexai-generateContent.json", "vertexai-streamGenerateContent.json",
	"gemini-batchEmbedContents.json",
	"Google-gemini-2.5-flash-generateContent.json", "Google-gemini-2.5-pro-streamGenerateContent.json", "Google-gemini-3-pro-preview-generateContent.json",
	"Google-gemini-3-pro-preview-streamGenerateContent.json", "Google-vertex-gemini-2-5-pro-generateContent.json",
}

// unlike says why a pair is not compared.
var unlike = map[string]string{
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1":         "the one model calls the tool once, the other three times",
	"chat_function_calling_handles_anyof_params.0":                                        "a type that may be null is written as anyOf to the one, as nullable to the other",
	"chat_multimodal_tool_attachments_describes_images_returned_from_tools.1":             "the image follows the tool's result as the user's, behind a text of the library's own",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":                    "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":                    "another tool is declared",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":                     "the attachment follows the tool's result as the user's, behind a text of the library's own",
	"chat_tool_choice_and_calls_control_respects_choice_required_for_unrelated_queries.1": "the tools are asked for, and answer, something else",
	"chat_tool_choice_and_calls_control_respects_specific_tool_choice.1":                  "the tools are asked for, and answer, something else",
	"chat_vision_models_can_understand_remote_images_without_extension.1":                 "the library fetches the image; the adapter leaves that to the provider",
}

// pairs is how many are compared. Recordings of Vertex AI begin with a request for a token, so
// that theirs is numbered one higher.
const pairs = 108

// TestRequestPairs translates what a library sends to a speaker of OpenAI's format, and compares
// it with what it sends to Gemini in the same conversation.
func TestRequestPairs(t *testing.T) {
	root := filepath.Join(plugintest.Cases(t, "gemini"), "request_pairs")
	conversations, err := filepath.Glob(filepath.Join(root, "*", "*"))
	require.NoError(t, err)
	compared := 0
	for _, dir := range conversations {
		said, ok := pairBody(t, dir, speakers...)
		if !ok || unlike[filepath.Base(dir)] != "" {
			continue
		}
		text, err := json.Marshal(said)
		require.NoError(t, err)
		for _, file := range listeners {
			from := dir
			if strings.HasPrefix(file, "vertexai-") {
				step := dir[len(dir)-1:]
				from = dir[:len(dir)-1] + string(step[0]+1)
			}
			want, ok := pairBody(t, from, file)
			if !ok {
				continue
			}
			compared++
			t.Run(filepath.Base(dir)+"/"+strings.TrimSuffix(file, ".json"), func(t *testing.T) {
				g := newGuest(t, `{}`)
				if strings.Contains(file, "gemini-3") {
					g.Model = "gemini-3-pro-preview"
				}
				if strings.Contains(file, "Embed") {
					g.Endpoint, g.Model = "embeddings", strings.TrimPrefix(list(want["requests"])[0]["model"].(string), "models/")
				}
				s, refused := g.Request(string(text))
				require.Nil(t, refused, "%s", text)
				var got object
				require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
				require.Equal(t, plain(t, want), plain(t, got))
			})
		}
	}
	require.Equal(t, pairs, compared)
}

// pairBody is the body of the first of the files that there is.
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
// models said, the IDs they made up, the signatures) and in one way of writing where the provider
// has several: the members' names, the types' letters, the schemas' place, the default choice of
// tools, and how the result of a function is wrapped.
func plain(t *testing.T, body object) string {
	if body["content"] != nil { // one input, for which the library makes a batch too
		body = object{"requests": []any{body}}
	}
	var contents []any
	for _, c := range list(body["contents"]) {
		var parts []any
		for _, p := range list(c["parts"]) {
			delete(p, "thoughtSignature")
			if p["thought"] == true || c["role"] == "model" && p["text"] == "" {
				continue
			}
			if data, ok := p["inline_data"].(object); ok {
				p = object{"inlineData": object{"mimeType": data["mime_type"], "data": data["data"]}}
			}
			if call, ok := p["functionCall"].(object); ok {
				delete(call, "id")
				delete(call, "args")
			}
			if response, ok := p["functionResponse"].(object); ok {
				delete(response, "id")
				response["response"] = wrapped(response["response"].(object))
			}
			if c["role"] == "model" && p["text"] != nil {
				p["text"] = "said"
			}
			parts = append(parts, p)
		}
		contents = append(contents, object{"role": c["role"], "parts": parts})
	}
	if contents != nil {
		body["contents"] = contents
	}
	if s, ok := body["systemInstruction"].(object); ok {
		delete(s, "role")
	}
	for _, tool := range list(body["tools"]) {
		for _, f := range list(tool["functionDeclarations"]) {
			schema := f["parametersJsonSchema"]
			if schema == nil {
				schema = f["parameters"]
			}
			delete(f, "parametersJsonSchema")
			f["parameters"] = plainSchema(schema)
		}
	}
	if c, ok := body["toolConfig"].(object); ok {
		calling := c["functionCallingConfig"].(object)
		calling["mode"] = strings.ToUpper(calling["mode"].(string))
		if calling["mode"] == "AUTO" {
			delete(body, "toolConfig")
		}
	}
	if g, ok := body["generationConfig"].(object); ok {
		delete(g, "thinkingConfig")
		if g["responseJsonSchema"] != nil {
			g["responseJsonSchema"] = plainSchema(g["responseJsonSchema"])
		}
		if len(g) == 0 {
			delete(body, "generationConfig")
		}
	}
	text, err := json.MarshalIndent(body, "", " ")
	require.NoError(t, err)
	return string(text)
}

// wrapped is the text of a function's result.
func wrapped(response object) any {
	if content := list(response["content"]); len(content) == 1 {
		return content[0]["text"]
	}
	return response["result"]
}

func plainSchema(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v {
			switch {
			case key == "additionalProperties", key == "strict" && value == true:
			case key == "required" && len(value.([]any)) == 0:
			case key == "type" && value != nil:
				if word, ok := value.(string); ok {
					value = strings.ToLower(word)
				}
				out[key] = value
			default:
				out[key] = plainSchema(value)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = plainSchema(v[i])
		}
	}
	return v
}
