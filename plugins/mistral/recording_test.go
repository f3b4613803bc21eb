package mistral_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// recordings is how many there are. All are of the endpoints that the adapter calls, and none is
// of an error.
const recordings = 18

type expectation struct {
	Text      string
	ToolCalls []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"tool_calls"`
	Finish    *string `json:"finish_reason"`
	Reasoning string  `json:"reasoning_text"`
	Usage     *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Cached     int64 `json:"cached_tokens"`
	}
}

type meta struct {
	Endpoint string
	Stream   bool
	Status   int
}

// frames cuts a body of server-sent events, as the host does.
func frames(body string) (list []string) {
	for block := range strings.SplitSeq(body, "\n\n") {
		if data, ok := strings.CutPrefix(block, "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}

// eachRecording calls f for every recording.
func eachRecording(t *testing.T, f func(t *testing.T, at string, m meta)) {
	dir := filepath.Join(plugintest.Cases(t, "mistral"), "recordings", "mistral")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, recordings)
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var m meta
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &m))
		require.Equal(t, 200, m.Status)
		t.Run(e.Name(), func(t *testing.T) { f(t, at, m) })
	}
}

func TestRecordings(t *testing.T) {
	thought := 0
	eachRecording(t, func(t *testing.T, at string, m meta) {
		g := newGuest(t, "{}")
		body := plugintest.ReadFile(t, at, "response.body")
		if m.Endpoint == "embeddings" {
			testVectors(t, g, body)
			return
		}
		var want expectation
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "expect.json"), &want))
		got := hear(t, g, m, string(body))
		compare(t, &want, got)
		if want.Reasoning == "" {
			require.Empty(t, got.ProviderData)
			return
		}
		thought++
		// What the model thought goes back as it came.
		text, err := json.Marshal([]any{
			object{"role": "user", "content": "a"},
			object{"role": "assistant", "content": got.Text, "reasoning_content": got.Reasoning, "provider_data": got.ProviderData},
			object{"role": "user", "content": "b"},
		})
		require.NoError(t, err)
		said := list(list(g.Body(`"messages":` + string(text))["messages"])[1]["content"])
		require.Equal(t, []object{
			{"type": "thinking", "thinking": []any{object{"type": "text", "text": want.Reasoning}}},
			{"type": "text", "text": want.Text},
		}, said)
	})
	require.Equal(t, 4, thought)
}

// hear plays an answer. A stream is played in several batches, which all have to say the same.
func hear(t *testing.T, g *plugintest.Guest, m meta, body string) plugintest.Message {
	if !m.Stream {
		text, f, e := g.Whole("", []byte(body))
		require.Nil(t, f)
		require.Nil(t, e)
		return plugintest.ReadWhole(t, text)
	}
	g.Stream = true
	list := frames(body)
	require.NotEmpty(t, list)
	p := g.PlayData("", list, plugintest.Apart)
	require.Nil(t, p.Failure)
	require.True(t, p.Done)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		require.Equal(t, p, g.PlayData("", list, func(int) bool { return random.IntN(3) == 0 }))
	}
	require.Equal(t, p, g.PlayData("", list, plugintest.Together))
	require.Equal(t, p, g.PlayData("", list[:len(list)-1], plugintest.Apart), "it is whole without its mark too")
	require.False(t, g.PlayData("", list[:len(list)-2], plugintest.Apart).Done, "cut before its finish it is not whole")
	return plugintest.Assemble(t, p.Chunks)
}

func compare(t *testing.T, want *expectation, got plugintest.Message) {
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, want.Reasoning, got.Reasoning)
	require.NotNil(t, want.Finish)
	require.Equal(t, *want.Finish, got.Finish)
	require.NotNil(t, want.Usage)
	require.NotNil(t, got.Usage)
	require.Equal(t, want.Usage.Prompt, got.Usage.Prompt)
	require.Equal(t, want.Usage.Completion, got.Usage.Completion)
	require.Equal(t, want.Usage.Prompt+want.Usage.Completion, got.Usage.Total)
	require.Equal(t, want.Usage.Cached, got.Usage.Details.Cached)
	require.Len(t, got.ToolCalls, len(want.ToolCalls))
	for i, c := range want.ToolCalls {
		require.NotEmpty(t, got.ToolCalls[i].ID)
		require.Equal(t, c.Name, got.ToolCalls[i].Name)
		require.JSONEq(t, string(c.Arguments), got.ToolCalls[i].Arguments)
	}
}

func testVectors(t *testing.T, g *plugintest.Guest, body []byte) {
	var from struct {
		Data []struct{ Embedding json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(body, &from))
	g.Endpoint = "embeddings"
	s, e := g.Request(`{"input":"Ruby is a programmer's best friend"}`)
	require.Nil(t, e)
	text, f, e := g.Whole(s.State, body)
	require.Nil(t, f)
	require.Nil(t, e)
	var got struct {
		Data []struct {
			Index     int
			Embedding json.RawMessage
		}
		Usage plugintest.Usage
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Len(t, got.Data, 1)
	require.Equal(t, string(from.Data[0].Embedding), string(got.Data[0].Embedding), "the numbers are those of the provider, to the digit")
	require.EqualValues(t, 11, got.Usage.Prompt)
	require.EqualValues(t, 11, got.Usage.Total)
}
