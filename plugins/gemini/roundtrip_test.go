package gemini_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// TestAnswersComeBack sends every recorded answer back as the caller got it: the model's turn has
// to be what the provider said, signatures and IDs included. What may be missing is what the
// provider makes nothing of: reasoning without a signature, empty text without one, and where a
// text was cut in two without a signature.
func TestAnswersComeBack(t *testing.T) {
	signatures := 0
	eachRecording(t, func(t *testing.T, at string, m meta) {
		if m.Status >= 300 || m.Endpoint == "batchEmbedContents" {
			t.Skip("no answer that comes back")
		}
		if _, ok := streamed[filepath.Base(at)]; ok {
			t.Skip("its calls are in parts, which do not come back as such")
		}
		body := string(plugintest.ReadFile(t, at, "response.body"))
		g := newGuest(t, "{}")
		g.Model = "gemini-2.5-flash" // which wants no signature in place of one that is not there
		got := hear(t, g, m, body)
		chunks := []string{body}
		if m.Endpoint != "generateContent" {
			chunks = frames(t, body)
		}
		want := merged(t, chunks)
		for _, p := range want {
			if p["thoughtSignature"] != nil {
				signatures++
			}
		}
		message := object{"role": "assistant", "content": got.Text, "reasoning_content": got.Reasoning, "provider_data": got.ProviderData}
		var calls, results []any
		for _, c := range got.ToolCalls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
			results = append(results, object{"role": "tool", "tool_call_id": c.ID, "content": "done"})
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		text, err := json.Marshal(append([]any{object{"role": "user", "content": "a"}, message}, results...))
		require.NoError(t, err)
		g.Stream = false
		contents := list(g.Body(`"messages":` + string(text))["contents"])
		require.Equal(t, "model", contents[1]["role"])
		require.Equal(t, want, list(contents[1]["parts"]))
		if calls == nil {
			require.Len(t, contents, 2)
			return
		}
		require.Len(t, contents, 3)
		answers := list(contents[2]["parts"])
		n := 0
		for _, p := range want {
			call, ok := p["functionCall"].(object)
			if !ok {
				continue
			}
			response := answers[n]["functionResponse"].(object)
			require.Equal(t, call["name"], response["name"])
			require.Equal(t, call["id"], response["id"])
			n++
		}
		require.Len(t, answers, n)
	})
	require.Greater(t, signatures, 20)
}

// merged are the parts of the first candidate of all chunks.
func merged(t *testing.T, chunks []string) (all []object) {
	for _, c := range chunks {
		var v struct {
			Candidates []struct {
				Content struct{ Parts []object }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(c), &v))
		for _, p := range v.Candidates[0].Content.Parts {
			text, isText := p["text"].(string)
			if call, ok := p["functionCall"].(object); ok && call["args"] == nil {
				call["args"] = object{}
			}
			if p["thoughtSignature"] != nil || !isText {
				all = append(all, p)
				continue
			}
			if p["thought"] == true || text == "" {
				continue
			}
			if last := len(all) - 1; last >= 0 && all[last]["text"] != nil && all[last]["thoughtSignature"] == nil {
				all[last]["text"] = all[last]["text"].(string) + text
				continue
			}
			all = append(all, object{"text": text})
		}
	}
	return all
}
