package bedrock_test

import (
	"bytes"
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
var speakers = []string{"openrouter-chat_completions.json", "azure-chat_completions.json", "deepseek-chat_completions.json"}

// unlike says why a pair is not compared: what the library says to the two providers differs in
// more than the format.
var unlike = map[string]string{
	"chat_citations_cites_text_documents_in_responses.0":                          "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.0":              "no request in OpenAI's format",
	"chat_citations_cites_tool_results_returned_as_search_results.1":              "no request in OpenAI's format",
	"chat_citations_streams_citations.0":                                          "no request in OpenAI's format",
	"chat_multimodal_tool_attachments_describes_images_returned_from_tools.1":     "the image follows the tool's result as the user's, behind a text of the library's own",
	"chat_string_tool_results_preserves_strings_returned_from_tools.0":            "another tool is declared",
	"chat_string_tool_results_preserves_strings_returned_from_tools.1":            "another tool is declared",
	"chat_tool_attachments_returns_text_and_attachments_from_tools.1":             "the attachment follows the tool's result as the user's",
	"chat_vision_models_can_understand_remote_images_without_extension.1":         "an https: URL, which Bedrock does not fetch: it is refused",
	"chat_function_calling_can_handle_multiple_tool_calls_in_a_single_response.1": "the tools answer in other words",
}

const pairs = 57

type object = map[string]any

// TestRequestPairs translates what a library sends to a speaker of OpenAI's format, and compares
// it with what it sends to Bedrock in the same conversation.
func TestRequestPairs(t *testing.T) {
	dir := filepath.Join(plugintest.Cases(t, "bedrock"), "request_pairs", "ruby_llm")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	compared := 0
	for _, e := range entries {
		want, ok := pairBody(t, dir, e.Name(), "bedrock-converse.json", "bedrock-converse-stream.json")
		if !ok || unlike[e.Name()] != "" {
			continue
		}
		compared++
		t.Run(e.Name(), func(t *testing.T) {
			body, ok := pairBody(t, dir, e.Name(), speakers...)
			require.True(t, ok)
			if _, thinks := want["additionalModelRequestFields"]; thinks {
				// There OpenRouter's own parameter says it, and an item of Anthropic's.
				body["reasoning_effort"] = "minimal"
				signed(list(body["messages"]), list(want["messages"]))
			}
			delete(body, "reasoning")
			text, err := json.Marshal(body)
			require.NoError(t, err)
			s, refused := newGuest(t, "{}").Request(string(text))
			require.Nil(t, refused, "%s", text)
			var got object
			require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
			require.Equal(t, plain(t, want), plain(t, got))
		})
	}
	require.Equal(t, pairs-len(unlike), compared)
}

// signed gives the caller's messages the reasoning that the provider's have.
func signed(to, from []object) {
	for i, m := range from {
		for _, b := range list(m["content"]) {
			if c, ok := b["reasoningContent"].(object); ok {
				said := c["reasoningText"].(object)
				to[i]["reasoning_content"] = said["text"]
				to[i]["provider_data"] = []any{object{
					"provider": "bedrock", "type": "reasoning", "vendor": "anthropic",
					"reasoning_bytes": len(said["text"].(string)), "signature": said["signature"],
				}}
			}
		}
	}
}

func pairBody(t *testing.T, dir, conversation string, files ...string) (object, bool) {
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, conversation, f))
		if err != nil {
			continue
		}
		var pair struct{ Body object }
		d := json.NewDecoder(bytes.NewReader(b))
		require.NoError(t, d.Decode(&pair))
		return pair.Body, true
	}
	return nil, false
}

// plain is a request without what two recordings of one conversation do not share (what the model
// said and the IDs it made up) and without what means the same: a choice of tools that is the
// default, the order of a schema's members, and the other name of Claude's thinking.
func plain(t *testing.T, body object) string {
	ids := map[any]string{}
	id := func(o object) {
		if ids[o["toolUseId"]] == "" {
			ids[o["toolUseId"]] = fmt.Sprintf("id-%d", len(ids))
		}
		o["toolUseId"] = ids[o["toolUseId"]]
	}
	for _, m := range list(body["messages"]) {
		for _, b := range list(m["content"]) {
			if m["role"] == "assistant" && b["text"] != nil {
				b["text"] = "said"
			}
			if use, ok := b["toolUse"].(object); ok {
				id(use)
			}
			if result, ok := b["toolResult"].(object); ok {
				id(result)
				delete(result, "status")
				for _, c := range list(result["content"]) {
					if v, ok := c["json"]; ok { // OpenAI's tools answer with text
						delete(c, "json")
						text, err := json.Marshal(v)
						require.NoError(t, err)
						c["text"] = string(text)
					}
				}
			}
			if d, ok := b["document"].(object); ok {
				d["name"] = strings.Replace(d["name"].(string), "_2", " (2)", 1)
			}
		}
	}
	if c, ok := body["toolConfig"].(object); ok {
		if choice, ok := c["toolChoice"].(object); ok && choice["auto"] != nil {
			delete(c, "toolChoice")
		}
		for _, tool := range list(c["tools"]) {
			if spec, ok := tool["toolSpec"].(object); ok {
				// The library says it to the one only, and inside of the schema.
				delete(spec["inputSchema"].(object)["json"].(object), "strict")
			}
		}
	}
	if f, ok := body["additionalModelRequestFields"].(object); ok && f["thinking"] != nil {
		f["reasoning_config"] = f["thinking"]
		delete(f, "thinking")
	}
	for key, v := range body { // an empty list or object says nothing
		if l, ok := v.([]any); ok && len(l) == 0 {
			delete(body, key)
		}
		if o, ok := v.(object); ok && len(o) == 0 {
			delete(body, key)
		}
	}
	if o, ok := body["outputConfig"].(object); ok {
		schema := o["textFormat"].(object)["structure"].(object)["jsonSchema"].(object)
		var v any
		require.NoError(t, json.Unmarshal([]byte(schema["schema"].(string)), &v))
		schema["schema"] = v
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

// TestRecordedRequests says the recorded requests in OpenAI's format, by rules of the test's own,
// and compares what comes of them with the recorded ones.
func TestRecordedRequests(t *testing.T) {
	dir := filepath.Join(plugintest.Cases(t, "bedrock"), "recordings", "bedrock")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	// OpenAI's format has no place for these.
	inexpressible := map[string]string{
		"openllmetry_bedrock_guardrails_metrics_titan_converse_stream_guardrail_0":                 "guardContent",
		"openllmetry_nova_nova_converse_0":                                                         "guardContent",
		"openllmetry_nova_nova_converse_stream_0":                                                  "guardContent",
		"rubyllm_chat_citations_with_bedrock_claude_haiku_4_5_cites_text_documents_in_responses_0": "a document's text",
		"rubyllm_chat_citations_with_bedrock_claude_haiku_4_5_streams_citations_0":                 "a document's text",
	}
	compared, without := 0, 0
	for _, e := range entries {
		var meta struct{ Endpoint, Path string }
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, dir, e.Name(), "meta.json"), &meta))
		if elsewhere[meta.Endpoint] != "" || inexpressible[e.Name()] != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "request.json"))
		if err != nil {
			without++
			continue
		}
		compared++
		t.Run(e.Name(), func(t *testing.T) {
			var want object
			require.NoError(t, json.Unmarshal(text, &want))
			body, err := json.Marshal(asOpenAI(t, want))
			require.NoError(t, err)
			g := newGuest(t, "{}")
			g.Model = modelOf(t, meta.Path)
			g.Stream = meta.Endpoint == "converse-stream"
			s, refused := g.Request(string(body))
			require.Nil(t, refused, "%s", body)
			require.Equal(t, strings.ReplaceAll(meta.Path, ":", "%3A"), s.Path)
			var got object
			require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
			require.Equal(t, plain(t, merged(want)), plain(t, got))
		})
	}
	require.Equal(t, 3, without)
	require.Equal(t, converse-without-len(inexpressible), compared)
}

// merged joins messages of one role that follow each other, as the adapter does.
func merged(body object) object {
	var all []any
	for _, m := range list(body["messages"]) {
		if n := len(all); n > 0 && all[n-1].(object)["role"] == m["role"] {
			last := all[n-1].(object)
			last["content"] = append(last["content"].([]any), m["content"].([]any)...)
			continue
		}
		all = append(all, m)
	}
	body["messages"] = all
	return body
}

// asOpenAI says a Converse request in OpenAI's format.
func asOpenAI(t *testing.T, from object) object {
	to := object{"model": "m"}
	var messages []any
	if system := list(from["system"]); len(system) > 0 {
		messages = append(messages, sides(t, object{"role": "system", "content": from["system"]})...)
	}
	for _, m := range list(from["messages"]) {
		messages = append(messages, sides(t, m)...)
	}
	to["messages"] = messages
	inference, _ := from["inferenceConfig"].(object)
	for ours, theirs := range map[string]string{"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"} {
		if v, ok := inference[ours]; ok {
			to[theirs] = v
		}
	}
	own := object{}
	for _, key := range []string{"guardrailConfig", "additionalModelRequestFields"} {
		if v, ok := from[key]; ok {
			own[key] = v
		}
	}
	config, _ := from["toolConfig"].(object)
	var tools, hosted []any
	for _, tool := range list(config["tools"]) {
		spec, ok := tool["toolSpec"].(object)
		if !ok {
			hosted = append(hosted, tool)
			continue
		}
		f := object{"name": spec["name"], "parameters": spec["inputSchema"].(object)["json"]}
		if v, ok := spec["description"]; ok {
			f["description"] = v
		}
		tools = append(tools, object{"type": "function", "function": f})
	}
	if tools != nil {
		to["tools"] = tools
	}
	if hosted != nil {
		own["toolConfig"] = object{"tools": hosted}
	}
	if choice, ok := config["toolChoice"].(object); ok {
		switch {
		case choice["auto"] != nil:
			to["tool_choice"] = "auto"
		case choice["any"] != nil:
			to["tool_choice"] = "required"
		default:
			to["tool_choice"] = object{"type": "function", "function": choice["tool"]}
		}
	}
	if o, ok := from["outputConfig"].(object); ok {
		schema := o["textFormat"].(object)["structure"].(object)["jsonSchema"].(object)
		format := object{"name": schema["name"], "schema": json.RawMessage(schema["schema"].(string))}
		if v, ok := schema["description"]; ok {
			format["description"] = v
		}
		to["response_format"] = object{"type": "json_schema", "json_schema": format}
	}
	if len(own) > 0 {
		to["bedrock"] = own
	}
	return to
}

// sides says one message, a tool's result as a message of its own.
func sides(t *testing.T, m object) (all []any) {
	var parts, calls []any
	for _, b := range list(m["content"]) {
		switch {
		case b["toolUse"] != nil:
			use := b["toolUse"].(object)
			input, err := json.Marshal(use["input"])
			require.NoError(t, err)
			calls = append(calls, object{
				"id": use["toolUseId"], "type": "function",
				"function": object{"name": use["name"], "arguments": string(input)},
			})
		case b["toolResult"] != nil:
			result := b["toolResult"].(object)
			var content []any
			for _, c := range list(result["content"]) {
				content = append(content, part(t, c))
			}
			all = append(all, object{"role": "tool", "tool_call_id": result["toolUseId"], "content": content})
		case b["cachePoint"] != nil:
			parts[len(parts)-1].(object)["cache_control"] = object{"type": "ephemeral"}
		default:
			parts = append(parts, part(t, b))
		}
	}
	if parts != nil || calls != nil {
		o := object{"role": m["role"]}
		if parts != nil {
			o["content"] = parts
		}
		if calls != nil {
			o["tool_calls"] = calls
		}
		all = append(all, o)
	}
	return all
}

func part(t *testing.T, b object) object {
	if v, ok := b["json"]; ok {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return object{"type": "text", "text": string(text)}
	}
	if i, ok := b["image"].(object); ok {
		source := i["source"].(object)
		url, _ := source["bytes"].(string)
		url = "data:image/" + i["format"].(string) + ";base64," + url
		if s3, ok := source["s3Location"].(object); ok {
			url = s3["uri"].(string)
		}
		return object{"type": "image_url", "image_url": object{"url": url}}
	}
	if d, ok := b["document"].(object); ok {
		return object{"type": "file", "file": object{
			"filename": d["name"].(string) + "." + d["format"].(string), "file_data": d["source"].(object)["bytes"],
		}}
	}
	require.Contains(t, b, "text")
	return object{"type": "text", "text": b["text"]}
}
