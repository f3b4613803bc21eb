package bedrock_test

import (
	"encoding/binary"
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

// elsewhere are the endpoints of recordings that are not Converse's, and why they are nobody's.
var elsewhere = map[string]string{
	"invoke":                      "InvokeModel speaks each vendor's own format",
	"invoke-with-response-stream": "InvokeModelWithResponseStream speaks each vendor's own format",
	"responses":                   "the OpenAI-compatible endpoint: a provider of that dialect",
	"chat.completions":            "the OpenAI-compatible endpoint: a provider of that dialect",
	"models":                      "no generation",
}

// notConverse is how many recordings there are of each of those.
var notConverse = map[string]int{
	"invoke": 8, "invoke-with-response-stream": 6, "responses": 3, "chat.completions": 2, "models": 1,
}

const converse = 38

// cited is the recording whose text stands in citationsContent, which the client that computed the
// expectations leaves out. The same answer as a stream has it as text, and so have we.
const cited = "rubyllm_chat_citations_with_bedrock_claude_haiku_4_5_cites_text_documents_in_responses_0"

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
	Error *struct {
		Status  int    `json:"upstream_status"`
		Message string `json:"message_contains"`
	}
}

// frames cuts an AWS event stream, as the host does.
func frames(t *testing.T, b []byte) (list []interlock.Frame) {
	for len(b) > 0 {
		require.GreaterOrEqual(t, len(b), 16)
		total, head := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		require.LessOrEqual(t, int(total), len(b))
		var event, exception string
		for h := b[12 : 12+head]; len(h) > 0; {
			name := string(h[1 : 1+h[0]])
			h = h[1+h[0]:]
			require.EqualValues(t, 7, h[0], "a header that is no string")
			size := binary.BigEndian.Uint16(h[1:])
			value := string(h[3 : 3+size])
			h = h[3+size:]
			switch name {
			case ":event-type":
				event = value
			case ":exception-type":
				exception = value
			}
		}
		f := interlock.Frame{Name: event, Data: b[12+head : total-4]}
		if exception != "" {
			f.Name = "exception:" + exception
		}
		list = append(list, f)
		b = b[total:]
	}
	return list
}

func modelOf(t *testing.T, path string) string {
	rest, ok := strings.CutPrefix(path, "/model/")
	require.True(t, ok)
	rest, _, _ = strings.Cut(rest, "/converse")
	return strings.NewReplacer("%3A", ":", "%2F", "/").Replace(rest)
}

func TestRecordings(t *testing.T) {
	dir := filepath.Join(plugintest.Cases(t, "bedrock"), "recordings", "bedrock")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	skipped, played := map[string]int{}, 0
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var meta struct {
			Endpoint string
			Stream   bool
			Status   int
			Path     string
		}
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &meta))
		if _, ok := elsewhere[meta.Endpoint]; ok {
			skipped[meta.Endpoint]++
			continue
		}
		require.Contains(t, []string{"converse", "converse-stream"}, meta.Endpoint, e.Name())
		played++
		t.Run(e.Name(), func(t *testing.T) {
			var want expectation
			require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "expect.json"), &want))
			g := newGuest(t, "{}")
			if meta.Path != "" {
				g.Model = modelOf(t, meta.Path)
			}
			g.Stream = meta.Endpoint == "converse-stream"
			body := plugintest.ReadFile(t, at, "response.body")
			var header map[string]string
			require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "response.headers.json"), &header))
			if want.Error != nil {
				f := g.Classify(meta.Status, header, body)
				require.Equal(t, want.Error.Status, meta.Status)
				require.Contains(t, f.Message, want.Error.Message)
				require.Equal(t, classes[e.Name()], f.Class)
				kind, _, _ := strings.Cut(header["x-amzn-errortype"], ":")
				require.Equal(t, kind, f.Type)
				return
			}
			if e.Name() == cited {
				require.Empty(t, want.Text)
				want.Text = "The Ruby programming language was created by Yukihiro Matsumoto in 1993."
			}
			if !g.Stream {
				text, f, e := g.Whole("", body)
				require.Nil(t, f)
				require.Nil(t, e)
				compare(t, &want, plugintest.ReadWhole(t, text))
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
				compare(t, &want, plugintest.Assemble(t, p.Chunks))
				if first == nil {
					first = p.Chunks
				}
				require.Equal(t, first, p.Chunks, "another batching, another answer")
			}
		})
	}
	require.Equal(t, notConverse, skipped)
	require.Equal(t, converse, played)
}

// classes are those of the recorded errors.
var classes = map[string]string{
	"pai_bedrock_bedrock_streaming_error_0":                                                                      interlock.ModelUnavailable,
	"pai_model_name_suggestions_model_name_suggestion_bedrock_0":                                                 interlock.ModelUnavailable,
	"pai_multimodal_tool_returns_multimodal_tool_return_matrix_direct_uploaded_file_image_bedrock_claude_1":      "",
	"rubyllm_chat_error_handling_with_bedrock_amazon_nova_2_lite_v1_0_raises_appropriate_auth_error_0":           interlock.UpstreamAuth,
	"rubyllm_chat_real_error_scenarios_bedrock_amazon_nova_2_lite_v1_0_handles_context_length_exceeded_errors_0": interlock.ContextOverflow,
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
	}
	if want.Usage == nil {
		require.Nil(t, got.Usage)
		return
	}
	require.NotNil(t, got.Usage)
	require.Equal(t, want.Usage.Prompt, got.Usage.Prompt)
	require.Equal(t, want.Usage.Completion, got.Usage.Completion)
	require.Equal(t, want.Usage.Prompt+want.Usage.Completion, got.Usage.Total)
	require.Equal(t, want.Usage.Cached, got.Usage.Details.Cached)
	require.Equal(t, want.Usage.CacheWrite, got.Usage.Details.CacheWrite)
}
