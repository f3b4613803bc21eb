package anthropic_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

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
		CacheWrite int64 `json:"cache_write_tokens"`
	}
	StreamError bool `json:"stream_error"`
	Error       *struct {
		Status  int    `json:"upstream_status"`
		Message string `json:"message_contains"`
		Type    string `json:"provider_type"`
	}
}

// classes are those of the recorded errors.
var classes = map[string]string{
	"pai_model_name_suggestions_model_name_suggestion_anthropic_0": interlock.ModelUnavailable,
	"reported_529_overloaded":                                      interlock.Overloaded,
	"reported_stream_overloaded":                                   interlock.Overloaded,
	"rubyllm_chat_real_error_scenarios_anthropic_claude_haiku_4_5_handles_context_length_exceeded_errors_0": interlock.ContextOverflow,
}

// unexpected are recordings without an expectation.
var unexpected = map[string]string{
	"vercel_duplicate_message_start": `{"text": "Hello, World!", "finish_reason": "stop", "usage": {"prompt_tokens": 17, "completion_tokens": 227}}`,
	"vercel_spliced_message_start":   `{"stream_error": true}`,
}

func TestRecordings(t *testing.T) {
	root := plugintest.Cases(t, "anthropic")
	count := map[string]int{}
	for _, provider := range []string{"anthropic", "vertex-anthropic"} {
		dir := filepath.Join(root, "recordings", provider)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			count[provider]++
			t.Run(e.Name(), func(t *testing.T) { playRecording(t, filepath.Join(dir, e.Name()), e.Name()) })
		}
	}
	require.Equal(t, map[string]int{"anthropic": 53, "vertex-anthropic": 2}, count)
}

func playRecording(t *testing.T, at, name string) {
	var meta struct {
		Stream bool
		Status int
	}
	require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &meta))
	expect := []byte(unexpected[name])
	if len(expect) == 0 {
		expect = plugintest.ReadFile(t, at, "expect.json")
	}
	var want expectation
	require.NoError(t, json.Unmarshal(expect, &want))
	g := newGuest(t, "{}")
	g.Stream = meta.Stream
	body := plugintest.ReadFile(t, at, "response.body")
	if want.Error != nil {
		var header map[string]string
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "response.headers.json"), &header))
		f := g.Classify(meta.Status, header, body)
		require.Equal(t, want.Error.Status, meta.Status)
		require.Contains(t, f.Message, want.Error.Message)
		require.Equal(t, want.Error.Type, f.Type)
		require.Empty(t, f.Code)
		require.Contains(t, classes, name)
		require.Equal(t, classes[name], f.Class)
		return
	}
	if !meta.Stream {
		text, f, e := g.Whole("", body)
		require.Nil(t, f)
		require.Nil(t, e)
		compare(t, &want, plugintest.ReadWhole(t, text))
		return
	}
	list := frames(string(body))
	random := rand.New(rand.NewPCG(1, 2))
	var first []string
	for i, cut := range []func(int) bool{
		plugintest.Apart,
		func(int) bool { return false },
		func(int) bool { return random.IntN(2) == 0 },
		func(int) bool { return random.IntN(5) == 0 },
	} {
		p := g.Play("", list, cut)
		if want.StreamError {
			require.NotNil(t, p.Failure)
			require.False(t, p.Done)
			if class, ok := classes[name]; ok {
				require.Equal(t, class, p.Failure.Class)
			} else {
				require.Equal(t, interlock.MalformedAnswer, p.Failure.Class)
			}
		} else {
			require.Nil(t, p.Failure)
			require.True(t, p.Done)
			compare(t, &want, plugintest.Assemble(t, p.Chunks))
		}
		if i == 0 {
			first = p.Chunks
		}
		require.Equal(t, first, p.Chunks, "another batching, another answer")
	}
}

func compare(t *testing.T, want *expectation, got plugintest.Message) {
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, want.Reasoning, got.Reasoning)
	if want.Finish != nil {
		require.Equal(t, *want.Finish, got.Finish)
	}
	require.Len(t, got.ToolCalls, len(want.ToolCalls))
	for i, call := range want.ToolCalls {
		require.Equal(t, call.Name, got.ToolCalls[i].Name)
		require.JSONEq(t, string(call.Arguments), got.ToolCalls[i].Arguments)
		require.NotEmpty(t, got.ToolCalls[i].ID)
	}
	require.NotNil(t, want.Usage)
	require.NotNil(t, got.Usage)
	require.Equal(t, want.Usage.Prompt, got.Usage.Prompt)
	require.Equal(t, want.Usage.Completion, got.Usage.Completion)
	require.Equal(t, want.Usage.Prompt+want.Usage.Completion, got.Usage.Total)
	require.Equal(t, want.Usage.Cached, got.Usage.Details.Cached)
	require.Equal(t, want.Usage.CacheWrite, got.Usage.Details.CacheWrite)
}
