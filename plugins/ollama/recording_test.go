package ollama_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// native is the endpoint of the recordings that are of Ollama's own API, and how many there are.
// The others are of its OpenAI-compatible endpoint, which needs no adapter.
const (
	native     = "ollama.chat"
	natives    = 3
	compatible = 9
)

type object = map[string]any

type expectation struct {
	Text      string
	ToolCalls []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"tool_calls"`
	Finish    string `json:"finish_reason"`
	Reasoning string `json:"reasoning_text"`
	Usage     *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Cached     int64 `json:"cached_tokens"`
	}
}

// eachRecording calls play for each recording of Ollama's own API.
func eachRecording(t *testing.T, play func(t *testing.T, at string, stream bool)) {
	dir := filepath.Join(casesDir(t), "recordings", "ollama")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	played, left := 0, 0
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var m struct {
			Endpoint, Path string
			Stream         bool
		}
		require.NoError(t, json.Unmarshal(readFile(t, at, "meta.json"), &m))
		if m.Endpoint != native {
			require.Equal(t, "chat.completions", m.Endpoint)
			left++
			continue
		}
		require.Equal(t, "/api/chat", m.Path)
		played++
		t.Run(e.Name(), func(t *testing.T) { play(t, at, m.Stream) })
	}
	require.Equal(t, []int{natives, compatible}, []int{played, left})
}

func frames(body []byte) (list []interlock.Frame) {
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			list = append(list, interlock.Frame{Data: line})
		}
	}
	return list
}

func TestRecordings(t *testing.T) {
	eachRecording(t, func(t *testing.T, at string, stream bool) {
		g := newGuest(t, "{}")
		g.stream = stream
		body := readFile(t, at, "response.body")
		var want expectation
		require.NoError(t, json.Unmarshal(readFile(t, at, "expect.json"), &want))
		if !stream {
			text, f, e := g.whole("", body)
			require.Nil(t, f)
			require.Nil(t, e)
			compare(t, &want, readWhole(t, text))
			return
		}
		random := rand.New(rand.NewPCG(1, 2))
		var first []string
		for _, cut := range []func(int) bool{
			func(int) bool { return true },
			func(int) bool { return false },
			func(int) bool { return random.IntN(2) == 0 },
			func(int) bool { return random.IntN(5) == 0 },
		} {
			p := g.play("", frames(body), cut)
			require.Nil(t, p.failure)
			require.True(t, p.done)
			if first == nil {
				first = p.chunks
			}
			require.Equal(t, first, p.chunks, "another batching, another answer")
		}
		compare(t, &want, assemble(t, first))
	})
}

func compare(t *testing.T, want *expectation, got message) {
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, want.Reasoning, got.Reasoning)
	require.Equal(t, want.Finish, got.Finish)
	require.Len(t, got.ToolCalls, len(want.ToolCalls))
	for i, call := range want.ToolCalls {
		require.Equal(t, call.Name, got.ToolCalls[i].Name)
		require.JSONEq(t, string(call.Arguments), got.ToolCalls[i].Arguments)
	}
	require.NotNil(t, got.Usage)
	require.Equal(t, want.Usage.Prompt, got.Usage.Prompt)
	require.Equal(t, want.Usage.Completion, got.Usage.Completion)
	require.Equal(t, want.Usage.Prompt+want.Usage.Completion, got.Usage.Total)
	require.Equal(t, want.Usage.Cached, got.Usage.Details.Cached)
}

// message is an answer as a caller's SDK puts it together.
type message struct {
	Text, Reasoning string
	ToolCalls       []toolCall
	Finish          string
	Usage           *usage
}

type toolCall struct{ ID, Name, Arguments string }

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type said struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	ToolCalls []struct {
		Index    int
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

type wire struct {
	Choices []struct {
		Delta, Message said
		Finish         string `json:"finish_reason"`
	}
	Usage *usage
}

func assemble(t *testing.T, chunks []string) (m message) {
	for _, text := range chunks {
		var w wire
		require.NoError(t, json.Unmarshal([]byte(text), &w), text)
		if w.Usage != nil {
			require.Nil(t, m.Usage, "usage comes twice")
			require.Empty(t, w.Choices)
			m.Usage = w.Usage
		}
		for _, c := range w.Choices {
			require.Empty(t, m.Finish, "something follows the finish")
			m.Text += c.Delta.Content
			m.Reasoning += c.Delta.Reasoning
			for _, call := range c.Delta.ToolCalls {
				if call.ID != "" {
					require.Len(t, m.ToolCalls, call.Index)
					m.ToolCalls = append(m.ToolCalls, toolCall{ID: call.ID, Name: call.Function.Name})
				}
				m.ToolCalls[call.Index].Arguments += call.Function.Arguments
			}
			m.Finish = c.Finish
		}
	}
	return m
}

func readWhole(t *testing.T, text string) (m message) {
	var w wire
	require.NoError(t, json.Unmarshal([]byte(text), &w), text)
	require.Len(t, w.Choices, 1)
	c := w.Choices[0]
	m = message{Text: c.Message.Content, Reasoning: c.Message.Reasoning, Finish: c.Finish, Usage: w.Usage}
	for _, call := range c.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, toolCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return m
}
