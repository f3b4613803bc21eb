package ollama_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
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
	dir := filepath.Join(plugintest.Cases(t, "ollama"), "recordings", "ollama")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	played, left := 0, 0
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var m struct {
			Endpoint, Path string
			Stream         bool
		}
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &m))
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
		g.Stream = stream
		body := plugintest.ReadFile(t, at, "response.body")
		var want expectation
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "expect.json"), &want))
		if !stream {
			text, f, e := g.Whole("", body)
			require.Nil(t, f)
			require.Nil(t, e)
			compare(t, &want, plugintest.ReadWhole(t, text))
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
			p := g.Play("", frames(body), cut)
			require.Nil(t, p.Failure)
			require.True(t, p.Done)
			if first == nil {
				first = p.Chunks
			}
			require.Equal(t, first, p.Chunks, "another batching, another answer")
		}
		compare(t, &want, plugintest.Assemble(t, first))
	})
}

func compare(t *testing.T, want *expectation, got plugintest.Message) {
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
