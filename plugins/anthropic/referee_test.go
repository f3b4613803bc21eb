package anthropic_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// inexpressible are recorded requests that hold what OpenAI's format has no place for.
var inexpressible = map[string]string{
	"pai_anthropic_anthropic_web_fetch_tool_1":                                                             "blocks of the provider's own tools in the history",
	"pai_code_execution_files_vcr_anthropic_code_execution_files_cache_prefix_stable_automatic_sonnet_5_1": "container_upload",
	"pai_tool_search_anthropic_to_google_deferred_capability_history_replay_1":                             "tool_reference",
}

// TestRecordedRequests says the recorded requests in OpenAI's format, by rules of the test's own,
// and compares what comes of them with the recorded ones.
func TestRecordedRequests(t *testing.T) {
	root := plugintest.Cases(t, "anthropic")
	compared := 0
	for _, provider := range []string{"anthropic", "vertex-anthropic"} {
		dir := filepath.Join(root, "recordings", provider)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name(), "request.json"))
			if err != nil || inexpressible[e.Name()] != "" {
				continue
			}
			compared++
			t.Run(e.Name(), func(t *testing.T) {
				var want object
				require.NoError(t, json.Unmarshal(text, &want))
				if want["model"] == nil { // Vertex AI has it in the path
					want["model"], want["stream"] = "m", strings.Contains(e.Name(), "streaming")
				}
				s, got := translate(t, "{}", want, asOpenAI(t, want))
				require.Equal(t, "/v1/messages", s.Path)
				require.Equal(t, refereed(t, merged(want)), refereed(t, got))
			})
		}
	}
	require.Equal(t, 40, compared)
}

// refereed is plain without what the provider takes for the same.
func refereed(t *testing.T, body object) string {
	for _, m := range list(body["messages"]) {
		for _, b := range list(m["content"]) {
			if b["type"] == "document" { // one text, given as text
				delete(b, "title")
			}
		}
	}
	return plain(t, body)
}

// merged joins messages of one role that follow each other, as the adapter does, and leaves out
// what says nothing.
func merged(body object) object {
	var all []any
	for _, m := range list(body["messages"]) {
		if s, ok := m["content"].(string); ok {
			m["content"] = []any{object{"type": "text", "text": s}}
		}
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

// known are the members that are said in OpenAI's words; all others are the provider's own.
var known = map[string]string{
	"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop",
	"model": "", "stream": "", "system": "", "messages": "", "tools": "", "tool_choice": "",
}

// asOpenAI says a request of the Messages API in OpenAI's format.
func asOpenAI(t *testing.T, from object) object {
	to, own := object{"model": "m"}, object{}
	for key, v := range from {
		if theirs, ok := known[key]; !ok {
			own[key] = v
		} else if theirs != "" {
			to[theirs] = v
		}
	}
	var messages, tools, hosted []any
	if s, ok := from["system"].(string); ok {
		messages = append(messages, object{"role": "system", "content": s})
	}
	for _, b := range list(from["system"]) {
		messages = append(messages, object{"role": "system", "content": []any{b}})
	}
	for _, m := range list(from["messages"]) {
		messages = append(messages, sides(t, m)...)
	}
	to["messages"] = messages
	for _, tool := range list(from["tools"]) {
		if tool["type"] != nil || tool["defer_loading"] != nil {
			hosted = append(hosted, tool)
			continue
		}
		f := object{"name": tool["name"], "parameters": tool["input_schema"]}
		for _, key := range []string{"description", "strict"} {
			if v, ok := tool[key]; ok {
				f[key] = v
			}
		}
		whole := object{"type": "function", "function": f}
		if v, ok := tool["cache_control"]; ok {
			whole["cache_control"] = v
		}
		tools = append(tools, whole)
	}
	if tools != nil {
		to["tools"] = tools
	}
	if hosted != nil {
		own["tools"] = hosted
	}
	if choice, ok := from["tool_choice"].(object); ok {
		switch choice["type"] {
		case "auto":
			to["tool_choice"] = "auto"
		case "any":
			to["tool_choice"] = "required"
		case "tool":
			to["tool_choice"] = object{"type": "function", "function": object{"name": choice["name"]}}
		default:
			require.Fail(t, "a choice that is not known")
		}
	}
	if len(own) > 0 {
		to["anthropic"] = own
	}
	return to
}

// sides says one message, a tool's result as a message of its own.
func sides(t *testing.T, m object) (all []any) {
	if s, ok := m["content"].(string); ok {
		return []any{object{"role": m["role"], "content": s}}
	}
	to := object{"role": m["role"]}
	var parts, calls, data []any
	reasoning := ""
	for _, b := range list(m["content"]) {
		switch b["type"] {
		case "tool_use":
			input, err := json.Marshal(b["input"])
			require.NoError(t, err)
			calls = append(calls, object{
				"id": b["id"], "type": "function",
				"function": object{"name": b["name"], "arguments": string(input)},
			})
		case "tool_result":
			content := b["content"]
			if items := list(content); items != nil {
				var says []any
				for _, c := range items {
					says = append(says, part(t, c))
				}
				content = says
			}
			all = append(all, object{"role": "tool", "tool_call_id": b["tool_use_id"], "content": content})
		case "thinking":
			said := b["thinking"].(string)
			reasoning += said
			data = append(data, object{"provider": "anthropic", "type": "thinking", "reasoning_bytes": len(said), "signature": b["signature"]})
		default:
			parts = append(parts, part(t, b))
		}
	}
	if data != nil {
		to["reasoning_content"], to["provider_data"] = reasoning, data
	}
	if calls != nil {
		to["tool_calls"] = calls
	}
	if parts != nil {
		to["content"] = parts
	}
	if len(to) > 1 {
		all = append(all, to)
	}
	return all
}

func part(t *testing.T, b object) object {
	o := object{}
	for _, key := range []string{"cache_control", "citations", "title", "context"} {
		if v, ok := b[key]; ok {
			o[key] = v
		}
	}
	source, _ := b["source"].(object)
	text := func(key string) string { s, _ := source[key].(string); return s }
	switch b["type"] {
	case "text":
		o["type"], o["text"] = "text", b["text"]
	case "image":
		switch source["type"] {
		case "base64":
			o["type"], o["image_url"] = "image_url", object{"url": "data:" + text("media_type") + ";base64," + text("data")}
		case "url":
			o["type"], o["image_url"] = "image_url", object{"url": source["url"]}
		default:
			o["type"], o["file"] = "file", object{"file_id": source["file_id"], "filename": "a.png"}
		}
	case "document":
		switch source["type"] {
		case "base64":
			o["type"], o["file"] = "file", object{"file_data": "data:" + text("media_type") + ";base64," + text("data")}
		case "text":
			o["type"], o["file"] = "file", object{"file_data": "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text("data")))}
		default:
			o["type"], o["file"] = "file", object{"file_id": source["file_id"]}
		}
	default:
		require.Fail(t, "a block that is not known", "%v", b["type"])
	}
	return o
}
