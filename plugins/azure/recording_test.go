package azure_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// endpoints are those of the recordings, and how many there are of each. The adapter serves all.
var endpoints = map[string]struct {
	name  string
	count int
}{
	"chat.completions": {"chat_completions", 19},
	"responses":        {"responses", 6},
	"embeddings":       {"embeddings", 3},
}

type meta struct {
	Endpoint, Path string
	Stream         bool
	Status         int
}

type expectation struct {
	Text      string
	ToolCalls []struct {
		Name      string
		Arguments json.RawMessage
	} `json:"tool_calls"`
	Finish *string `json:"finish_reason"`
	Usage  *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Cached     int64 `json:"cached_tokens"`
		Reasoning  int64 `json:"reasoning_tokens"`
	}
	Error *struct {
		Status  int    `json:"upstream_status"`
		Message string `json:"message_contains"`
		Code    any    `json:"provider_code"`
	}
}

// classes are those of the recorded errors.
var classes = map[string]string{
	"openllmetry_azure_chat_reasoning_1":               interlock.ModelUnavailable,
	"openllmetry_embeddings_azure_openai_embeddings_2": interlock.UpstreamAuth,
	"reported_400_content_filter":                      interlock.ContentFiltered,
	"rubyllm_chat_real_error_scenarios_azure_grok_4_1_fast_non_reasoning_handles_context_length_exceeded_errors_0": interlock.RateLimited,
}

// eachRecording calls play for each recording.
func eachRecording(t *testing.T, play func(t *testing.T, at string, m meta)) (count map[string]int) {
	dir := filepath.Join(plugintest.Cases(t, "azure"), "recordings", "azure")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	count = map[string]int{}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var m meta
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &m))
		count[m.Endpoint]++
		t.Run(e.Name(), func(t *testing.T) { play(t, at, m) })
	}
	return count
}

// frames cuts server-sent events, as the host does.
func frames(t *testing.T, b []byte) (list []interlock.Frame) {
	var s openai.Splitter
	var ev openai.Event
	add := func() {
		if len(ev.Data) > 0 {
			list = append(list, interlock.Frame{Name: string(ev.Name), Data: append([]byte(nil), ev.Data...)})
		}
	}
	s.Feed(b)
	for {
		ok, err := s.Next(&ev)
		require.NoError(t, err)
		if !ok {
			break
		}
		add()
	}
	for {
		ok, err := s.Flush(&ev)
		require.NoError(t, err)
		if !ok {
			return list
		}
		add()
	}
}

func TestRecordings(t *testing.T) {
	count := eachRecording(t, func(t *testing.T, at string, m meta) {
		g := newGuest(t, "{}")
		g.Endpoint, g.Stream = endpoints[m.Endpoint].name, m.Stream
		require.NotEmpty(t, g.Endpoint, m.Endpoint)
		body := plugintest.ReadFile(t, at, "response.body")
		var want expectation
		if text, err := os.ReadFile(filepath.Join(at, "expect.json")); err == nil {
			require.NoError(t, json.Unmarshal(text, &want))
		}
		if m.Status >= 400 {
			var header map[string]string
			require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "response.headers.json"), &header))
			f := g.Classify(m.Status, header, body)
			require.NotEmpty(t, classes[filepath.Base(at)])
			require.Equal(t, classes[filepath.Base(at)], f.Class)
			require.NotEmpty(t, f.Message)
			if want.Error != nil {
				require.Equal(t, want.Error.Status, m.Status)
				require.Contains(t, f.Message, want.Error.Message)
				require.Equal(t, want.Error.Code, f.Code)
			}
			if f.Class == interlock.RateLimited {
				require.Equal(t, uint64(1000), f.RetryAfter, "it says both a second and 0 ms")
			}
			return
		}
		if !m.Stream {
			text, f, e := g.Whole("", body)
			require.Nil(t, f)
			require.Nil(t, e)
			require.Equal(t, strings.TrimSpace(string(body)), text, "a whole answer passes byte for byte")
			if g.Endpoint == "embeddings" {
				return
			}
			var a openai.Answer
			require.Equal(t, openai.Whole, a.Scan(endpointOf(t, g.Endpoint), []byte(text)))
			compare(t, &want, whole(t, g.Endpoint, text))
			return
		}
		list := frames(t, body)
		random := rand.New(rand.NewPCG(1, 2))
		var first []string
		for _, cut := range []func(int) bool{
			func(int) bool { return true },
			func(int) bool { return false },
			func(int) bool { return random.IntN(2) == 0 },
			func(int) bool { return random.IntN(5) == 0 },
		} {
			p := g.Play("", list, cut)
			require.Nil(t, p.Failure)
			require.True(t, p.Done)
			if first == nil {
				first = p.Chunks
			}
			require.Equal(t, first, p.Chunks, "another batching, another answer")
		}
		compare(t, &want, assemble(t, g.Endpoint, first))
		if g.Endpoint == "chat_completions" {
			for _, c := range first {
				var v struct{ ID, Object, Model string }
				require.NoError(t, json.Unmarshal([]byte(c), &v))
				require.Equal(t, "chat.completion.chunk", v.Object)
				require.NotEmpty(t, v.ID)
				require.NotEmpty(t, v.Model)
			}
			require.Equal(t, strings.Count(string(body), "prompt_filter_results"), strings.Count(strings.Join(first, "\n"), "prompt_filter_results"), "no result of the filter is lost")
		}
	})
	for name, e := range endpoints {
		require.Equal(t, e.count, count[name], name)
	}
	require.Len(t, count, len(endpoints))
}

func endpointOf(t *testing.T, name string) openai.Endpoint {
	for _, e := range []openai.Endpoint{openai.ChatCompletions, openai.Responses, openai.Completions, openai.Embeddings} {
		if e.String() == name {
			return e
		}
	}
	t.Fatal(name)
	return 0
}

// said is what an answer says.
type said struct {
	text, finish string
	calls        []function
	usage        *usage
}

type function struct{ Name, Arguments string }

type usage struct {
	Prompt     int64   `json:"prompt_tokens"`
	Completion int64   `json:"completion_tokens"`
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	Total      int64   `json:"total_tokens"`
	PromptOf   details `json:"prompt_tokens_details"`
	AnswerOf   details `json:"completion_tokens_details"`
	InputOf    details `json:"input_tokens_details"`
	OutputOf   details `json:"output_tokens_details"`
}

type details struct {
	Cached    int64 `json:"cached_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
}

// assemble puts a stream together.
func assemble(t *testing.T, endpoint string, chunks []string) (s said) {
	for _, text := range chunks {
		var w struct {
			Type     string
			Response json.RawMessage
			Choices  []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Index    int
						ID       string
						Function function
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage *usage
		}
		require.NoError(t, json.Unmarshal([]byte(text), &w), text)
		if endpoint == "responses" {
			if w.Type == "response.completed" {
				return whole(t, endpoint, string(w.Response))
			}
			continue
		}
		if w.Usage != nil {
			s.usage = w.Usage
		}
		for _, c := range w.Choices {
			s.text += c.Delta.Content
			for _, call := range c.Delta.Calls {
				if call.ID != "" {
					require.Len(t, s.calls, call.Index)
					s.calls = append(s.calls, function{})
				}
				s.calls[call.Index].Name += call.Function.Name
				s.calls[call.Index].Arguments += call.Function.Arguments
			}
			if c.Finish != "" {
				s.finish = c.Finish
			}
		}
	}
	return s
}

func whole(t *testing.T, endpoint, text string) (s said) {
	var w struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct{ Function function } `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Output []struct {
			Type, Name, Arguments string
			Content               []struct{ Text string }
		}
		Usage *usage
	}
	require.NoError(t, json.Unmarshal([]byte(text), &w), text)
	s.usage = w.Usage
	if endpoint == "responses" {
		s.finish = "stop"
		for _, o := range w.Output {
			if o.Type == "function_call" {
				s.finish = "tool_calls"
				s.calls = append(s.calls, function{o.Name, o.Arguments})
			}
			for _, c := range o.Content {
				s.text += c.Text
			}
		}
		return s
	}
	require.Len(t, w.Choices, 1)
	s.text, s.finish = w.Choices[0].Message.Content, w.Choices[0].Finish
	for _, c := range w.Choices[0].Message.Calls {
		s.calls = append(s.calls, c.Function)
	}
	return s
}

func compare(t *testing.T, want *expectation, got said) {
	require.Equal(t, want.Text, got.text)
	if want.Finish != nil {
		require.Equal(t, *want.Finish, got.finish)
	}
	require.Len(t, got.calls, len(want.ToolCalls))
	for i, call := range want.ToolCalls {
		require.Equal(t, call.Name, got.calls[i].Name)
		require.JSONEq(t, string(call.Arguments), got.calls[i].Arguments)
	}
	if want.Usage == nil {
		require.Nil(t, got.usage)
		return
	}
	u := got.usage
	require.NotNil(t, u)
	require.Equal(t, want.Usage.Prompt, u.Prompt+u.Input)
	require.Equal(t, want.Usage.Completion, u.Completion+u.Output)
	require.Equal(t, want.Usage.Cached, u.PromptOf.Cached+u.InputOf.Cached)
	require.Equal(t, want.Usage.Reasoning, u.AnswerOf.Reasoning+u.OutputOf.Reasoning)
}
