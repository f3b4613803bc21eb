package cohere_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// elsewhere are the endpoints of recordings that the adapter does not call, how many there are of
// each, and why.
var elsewhere = map[string]struct {
	count int
	why   string
}{
	"chat.v1":   {8, "version 1, another format"},
	"embed.v1":  {2, "version 1, another format"},
	"models":    {3, "a list of models"},
	"rerank.v1": {1, "version 1, and OpenAI's format has no reranking"},
	"rerank.v2": {3, "OpenAI's format has no reranking"},
}

// recordings is how many there are besides.
const recordings = 33

// failures are the classes of the recorded errors.
var failures = map[string]string{
	"pai_embeddings_testcohere.test_embed_error_0":                                                        interlock.ModelUnavailable,
	"rubyllm_chat_error_handling_with_cohere_command_a_03_2025_raises_appropriate_auth_error_0":           interlock.UpstreamAuth,
	"rubyllm_chat_real_error_scenarios_cohere_command_a_03_2025_handles_context_length_exceeded_errors_0": interlock.ContextOverflow,
}

type expectation struct {
	Text      string
	ToolCalls []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"tool_calls"`
	Finish    *string `json:"finish_reason"`
	Reasoning string  `json:"reasoning_text"`
	Plan      string  `json:"cohere_tool_plan"`
	Usage     *struct {
		Prompt     int64  `json:"prompt_tokens"`
		Completion int64  `json:"completion_tokens"`
		Cached     int64  `json:"cached_tokens"`
		Reasoning  *int64 `json:"reasoning_tokens"`
	}
	Error *struct {
		Status  int    `json:"upstream_status"`
		Message string `json:"message_contains"`
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
		if _, data, ok := strings.Cut(block, "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}

// eachRecording calls f for every recording that is the adapter's.
func eachRecording(t *testing.T, f func(t *testing.T, at string, m meta)) {
	dir := filepath.Join(plugintest.Cases(t, "cohere"), "recordings", "cohere")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	n, skipped := 0, map[string]int{}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var m meta
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &m))
		if elsewhere[m.Endpoint].count > 0 {
			skipped[m.Endpoint]++
			continue
		}
		n++
		t.Run(e.Name(), func(t *testing.T) { f(t, at, m) })
	}
	for endpoint, e := range elsewhere {
		require.Equal(t, e.count, skipped[endpoint], endpoint)
	}
	require.Equal(t, recordings, n)
}

func TestRecordings(t *testing.T) {
	thought, planned := 0, 0
	eachRecording(t, func(t *testing.T, at string, m meta) {
		g := newGuest(t, "{}")
		body := plugintest.ReadFile(t, at, "response.body")
		if m.Endpoint == "embed.v2" {
			g.Endpoint = "embeddings"
		}
		if m.Status >= 300 {
			testFailure(t, g, at, m, body)
			return
		}
		if m.Endpoint == "embed.v2" {
			testVectors(t, g, body)
			return
		}
		var want expectation
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "expect.json"), &want))
		got := hear(t, g, m, string(body))
		compare(t, &want, got)
		if want.Reasoning != "" {
			thought++
		}
		if want.Plan != "" {
			planned++
		}
		testGoingBack(t, g, &want, got)
	})
	require.Equal(t, 6, thought)
	require.Equal(t, 5, planned)
}

// testGoingBack sends the answer back: what the model thought and planned is there as it came.
func testGoingBack(t *testing.T, g *plugintest.Guest, want *expectation, got plugintest.Message) {
	said := object{"role": "assistant", "content": got.Text, "reasoning_content": got.Reasoning, "provider_data": got.ProviderData}
	var calls []any
	for _, c := range got.ToolCalls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		said["tool_calls"] = calls
	}
	text, err := json.Marshal([]any{object{"role": "user", "content": "a"}, said})
	require.NoError(t, err)
	g.Stream = false
	m := list(g.Body(`"messages":` + string(text))["messages"])[1]
	if want.Plan != "" {
		require.Equal(t, want.Plan, m["tool_plan"])
	} else {
		require.NotContains(t, m, "tool_plan")
	}
	if calls != nil {
		require.Equal(t, calls, m["tool_calls"])
	}
	switch {
	case want.Reasoning == "" && want.Text == "":
		require.NotContains(t, m, "content")
	case want.Reasoning == "":
		require.Equal(t, want.Text, m["content"])
	default:
		blocks := []any{object{"type": "thinking", "thinking": want.Reasoning}}
		if want.Text != "" {
			blocks = append(blocks, object{"type": "text", "text": want.Text})
		}
		require.Equal(t, blocks, m["content"])
	}
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
	if list[len(list)-1] == "[DONE]" {
		list = list[:len(list)-1]
		require.Equal(t, p, g.PlayData("", list, plugintest.Apart), "it is whole without its mark too")
	}
	require.False(t, g.PlayData("", list[:len(list)-1], plugintest.Apart).Done, "cut before its end it is not whole")
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
	if want.Usage.Reasoning != nil {
		require.Equal(t, *want.Usage.Reasoning, got.Usage.Completed.Reasoning)
	}
	require.Len(t, got.ToolCalls, len(want.ToolCalls))
	for i, c := range want.ToolCalls {
		require.NotEmpty(t, got.ToolCalls[i].ID)
		require.Equal(t, c.Name, got.ToolCalls[i].Name)
		require.JSONEq(t, string(c.Arguments), got.ToolCalls[i].Arguments)
	}
}

func testFailure(t *testing.T, g *plugintest.Guest, at string, m meta, body []byte) {
	var header map[string]string
	require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "response.headers.json"), &header))
	f := g.Classify(m.Status, header, body)
	class, ok := failures[filepath.Base(at)]
	require.True(t, ok)
	require.Equal(t, class, f.Class)
	var said struct{ Message string }
	require.NoError(t, json.Unmarshal(body, &said))
	require.Equal(t, said.Message, f.Message)
	if file, err := os.ReadFile(filepath.Join(at, "expect.json")); err == nil {
		var want expectation
		require.NoError(t, json.Unmarshal(file, &want))
		require.Equal(t, want.Error.Status, m.Status)
		require.Contains(t, f.Message, want.Error.Message)
	}
}

func testVectors(t *testing.T, g *plugintest.Guest, body []byte) {
	var from struct {
		Texts      []string
		Embeddings struct{ Float []json.RawMessage }
		Meta       struct {
			Billed struct {
				Tokens int64 `json:"input_tokens"`
			} `json:"billed_units"`
		}
	}
	require.NoError(t, json.Unmarshal(body, &from))
	input, err := json.Marshal(from.Texts)
	require.NoError(t, err)
	s, e := g.Request(`{"input":` + string(input) + `}`)
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
	require.NotEmpty(t, from.Texts)
	require.Len(t, got.Data, len(from.Texts))
	for i, v := range got.Data {
		require.Equal(t, i, v.Index)
		require.Equal(t, strings.ReplaceAll(string(from.Embeddings.Float[i]), " ", ""), string(v.Embedding), "the numbers are those of the provider, to the digit")
	}
	require.Positive(t, from.Meta.Billed.Tokens)
	require.Equal(t, from.Meta.Billed.Tokens, got.Usage.Prompt)
	require.Equal(t, from.Meta.Billed.Tokens, got.Usage.Total)
}
