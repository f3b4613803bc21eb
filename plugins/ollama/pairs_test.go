package ollama_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// shape is a request of /api/chat as Ollama documents it.
type shape struct {
	Model     string
	Messages  []shapeMessage
	Tools     []shapeTool
	Format    json.RawMessage
	Options   map[string]any
	Think     any
	Stream    *bool
	KeepAlive any `json:"keep_alive"`
}

type shapeMessage struct {
	Role, Content, Thinking string
	Images                  [][]byte
	ToolName                string `json:"tool_name"`
	ToolCallID              string `json:"tool_call_id"`
	ToolCalls               []struct {
		ID       string
		Function struct {
			Name      string
			Arguments map[string]any
		}
	} `json:"tool_calls"`
}

type shapeTool struct {
	Type     string
	Function struct {
		Name, Description string
		Parameters        object
	}
}

// checkShape holds a request against what Ollama documents: a member that is not there, or of
// another type, is an error.
func checkShape(t *testing.T, body []byte) (s shape) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s), "%s", body)
	require.NotEmpty(t, s.Model)
	require.NotEmpty(t, s.Messages)
	require.NotNil(t, s.Stream)
	for _, m := range s.Messages {
		require.Contains(t, []string{"system", "user", "assistant", "tool"}, m.Role)
	}
	for _, tool := range s.Tools {
		require.Equal(t, "function", tool.Type)
		require.NotEmpty(t, tool.Function.Name)
		require.NotNil(t, tool.Function.Parameters)
	}
	return s
}

// turns are who says what, in a request to Ollama.
func turns(s shape) (list []string) {
	names := map[string]string{}
	for _, m := range s.Messages {
		if m.Thinking != "" {
			list = append(list, m.Role+" thinks "+m.Thinking)
		}
		if m.Content != "" {
			list = append(list, m.Role+" says "+m.Content)
		}
		for _, image := range m.Images {
			list = append(list, m.Role+" shows "+string(image[:8]))
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
			args, _ := json.Marshal(c.Function.Arguments)
			list = append(list, m.Role+" calls "+c.Function.Name+" "+string(args))
		}
		if m.Role == "tool" {
			list = append(list, "that was "+names[m.ToolCallID]+", "+m.ToolName)
		}
	}
	for _, tool := range s.Tools {
		schema, _ := json.Marshal(tool.Function.Parameters)
		list = append(list, "there is "+tool.Function.Name+": "+tool.Function.Description+" "+string(schema))
	}
	return list
}

// asked are who says what, in a caller's request.
func asked(t *testing.T, body object) (list []string) {
	names := map[string]string{}
	for _, m := range items(body["messages"]) {
		role := strings.Replace(m["role"].(string), "developer", "system", 1)
		if text, ok := m["reasoning_content"].(string); ok && text != "" {
			list = append(list, role+" thinks "+text)
		}
		if text, ok := m["content"].(string); ok && text != "" {
			list = append(list, role+" says "+text)
		}
		for _, p := range items(m["content"]) {
			if p["type"] == "text" {
				list = append(list, role+" says "+p["text"].(string))
				continue
			}
			_, data, _ := strings.Cut(p["image_url"].(object)["url"].(string), ";base64,")
			var image []byte
			require.NoError(t, json.Unmarshal([]byte(`"`+data+`"`), &image))
			list = append(list, role+" shows "+string(image[:8]))
		}
		for _, c := range items(m["tool_calls"]) {
			f := c["function"].(object)
			names[c["id"].(string)] = f["name"].(string)
			var args any = object{}
			if text := f["arguments"].(string); text != "" {
				require.NoError(t, json.Unmarshal([]byte(text), &args))
			}
			text, _ := json.Marshal(args)
			list = append(list, role+" calls "+f["name"].(string)+" "+string(text))
		}
		if role == "tool" {
			name := names[m["tool_call_id"].(string)]
			list = append(list, "that was "+name+", "+name)
		}
	}
	for _, tool := range items(body["tools"]) {
		f := tool["function"].(object)
		schema, _ := json.Marshal(f["parameters"])
		about, _ := f["description"].(string)
		list = append(list, "there is "+f["name"].(string)+": "+about+" "+string(schema))
	}
	return list
}

func items(v any) (list []object) {
	all, _ := v.([]any)
	for _, item := range all {
		list = append(list, item.(object))
	}
	return list
}

// TestRequestPairs translates what libraries send to Ollama's OpenAI-compatible endpoint, and what
// they send to OpenAI: it says the same by Ollama's own API, which has the shape that is documented.
func TestRequestPairs(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(plugintest.Cases(t, "ollama"), "request_pairs", "*", "*"))
	require.NoError(t, err)
	compared := 0
	for _, dir := range dirs {
		for _, file := range []string{"ollama-chat_completions.json", "ollama_cloud-chat_completions.json", "OpenAI-openai-gpt-4o-chat_completions.json"} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue
			}
			t.Run(filepath.Base(dir)+"/"+file, func(t *testing.T) {
				var pair struct{ Body object }
				require.NoError(t, json.Unmarshal(b, &pair))
				delete(pair.Body, "enable_thinking") // of the endpoint, where reasoning_effort says it
				for _, m := range items(pair.Body["messages"]) {
					delete(m, "reasoning") // the same as reasoning_content
				}
				text, err := json.Marshal(pair.Body)
				require.NoError(t, err)
				g := newGuest(t, "{}")
				g.Model, g.Stream = pair.Body["model"].(string), pair.Body["stream"] == true
				s, e := g.Request(string(text))
				require.Nil(t, e)
				compared++
				require.Equal(t, "/api/chat", s.Path)
				got := checkShape(t, []byte(s.Body))
				require.Equal(t, g.Model, got.Model)
				require.Equal(t, g.Stream, *got.Stream)
				require.Equal(t, asked(t, pair.Body), turns(got))
				format, _ := pair.Body["response_format"].(object)
				if schema, ok := format["json_schema"].(object); ok {
					want, err := json.Marshal(schema["schema"])
					require.NoError(t, err)
					require.JSONEq(t, string(want), string(got.Format))
				} else if format["type"] == "json_object" {
					require.Equal(t, `"json"`, string(got.Format))
				} else {
					require.Empty(t, got.Format)
				}
				if limit, ok := pair.Body["max_completion_tokens"]; ok {
					require.Equal(t, limit, got.Options["num_predict"])
				}
				if heat, ok := pair.Body["temperature"]; ok {
					require.Equal(t, heat, got.Options["temperature"])
				}
			})
		}
	}
	require.Equal(t, 93, compared)
}

// TestRecordedRequests turns a recorded request of Ollama's own API into a caller's, and asks for
// it by way of the adapter: the same is sent, but for the IDs of calls.
func TestRecordedRequests(t *testing.T) {
	eachRecording(t, func(t *testing.T, at string, stream bool) {
		var want object
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "request.json"), &want))
		for key, v := range want {
			if list, ok := v.([]any); v == nil || v == "" || ok && len(list) == 0 {
				delete(want, key) // asks for nothing
			} else if o, ok := v.(object); ok && len(o) == 0 {
				delete(want, key)
			}
		}
		asks := object{"model": "any", "stream": stream}
		var messages []any
		for _, m := range items(want["messages"]) {
			o := object{"role": m["role"], "content": m["content"]}
			var calls []any
			for _, c := range items(m["tool_calls"]) {
				f := c["function"].(object)
				args, err := json.Marshal(f["arguments"])
				require.NoError(t, err)
				calls = append(calls, object{"id": "c1", "type": "function", "function": object{"name": f["name"], "arguments": string(args)}})
			}
			if calls != nil {
				o["tool_calls"] = calls
			}
			if m["role"] == "tool" {
				o["tool_call_id"] = "c1"
			}
			messages = append(messages, o)
		}
		asks["messages"] = messages
		text, err := json.Marshal(asks)
		require.NoError(t, err)
		g := newGuest(t, "{}")
		g.Model, g.Stream = want["model"].(string), stream
		s, e := g.Request(string(text))
		require.Nil(t, e)
		checkShape(t, []byte(s.Body))
		var got object
		require.NoError(t, json.Unmarshal([]byte(s.Body), &got))
		for _, m := range items(got["messages"]) {
			delete(m, "tool_name")
			delete(m, "tool_call_id")
			for _, c := range items(m["tool_calls"]) {
				delete(c, "id")
			}
		}
		require.Equal(t, want, got)
	})
}
