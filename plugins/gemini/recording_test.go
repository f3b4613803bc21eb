package gemini_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// elsewhere are the recordings that are no answer of the methods that the adapter calls. None is
// of the provider's OpenAI-compatible endpoint: that dialect needs no adapter.
var elsewhere = map[string]string{
	"gemini/llmgemini_gemini_cli_gemini_models_0": "a list of models",
}

// recordings is how many there are besides, by folder.
var recordings = map[string]int{"gemini": 43, "vertex-gemini": 10}

// failures are the class and the code of each recording of an error.
var failures = map[string]struct {
	class, code string
	retry       uint64
}{
	"crewai_testcrewmultimodalgemini.test_image_file_gemini_gemini_1.5_flash_0":                          {interlock.ModelUnavailable, "404", 0},
	"pai_embeddings_testgoogle.test_embed_error_0":                                                       {interlock.ModelUnavailable, "404", 0},
	"pai_model_name_suggestions_model_name_suggestion_google_0":                                          {interlock.ModelUnavailable, "404", 0},
	"rubyllm_chat_error_handling_with_gemini_gemini_2_5_flash_raises_appropriate_auth_error_0":           {interlock.UpstreamAuth, "API_KEY_INVALID", 0},
	"rubyllm_chat_real_error_scenarios_gemini_gemini_2_5_flash_handles_context_length_exceeded_errors_0": {interlock.RateLimited, "429", 48_000},
	"vercel_google_429_retry_info_json":                                                                  {interlock.RateLimited, "429", 34_400},
	"otel_generate_content_invalid_role_0":                                                               {interlock.ClientInvalid, "400", 0},
	"otel_generate_content_invalid_temperature_0":                                                        {interlock.ClientInvalid, "400", 0},
}

// streamed are the arguments of calls that come in parts, which the client that computed the
// expectations does not put together.
var streamed = map[string][]string{
	"vercel_google_stream_no_args_tool_call": {
		"read_theme {}", `read_screen {"id":"A"}`, `read_screen {"id":"B"}`, `read_screen {"id":"C"}`,
	},
	"vercel_google_stream_tool_call_array_arguments_missing_terminal_function_call": {
		`writeItems {"operations":[{"action":"add","description":"Fresh red apple","itemid":"apple_001","price":0.5},` +
			`{"action":"add","description":"Ripe yellow banana","itemid":"banana_001","price":0.3}]}`,
	},
	"vercel_google_vertex_stream_tool_call_arguments_nested.1": nil, // looked at below
}

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
		Reasoning  int64 `json:"reasoning_tokens"`
	}
	Error *struct {
		Status  int    `json:"upstream_status"`
		Message string `json:"message_contains"`
		Type    string `json:"provider_type"`
	}
}

type meta struct {
	Endpoint string
	Status   int
	Path     string
}

// frames cuts a body of server-sent events, or an array, as the host does.
func frames(t *testing.T, body string) (list []string) {
	if strings.HasPrefix(body, "[") {
		var items []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(body), &items))
		for _, item := range items {
			list = append(list, string(item))
		}
		return list
	}
	for block := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
		if data, ok := strings.CutPrefix(block, "data:"); ok {
			list = append(list, strings.TrimPrefix(data, " "))
		}
	}
	return list
}

func modelOf(t *testing.T, path string) string {
	_, rest, ok := strings.Cut(path, "/models/")
	require.True(t, ok, path)
	rest, _, _ = strings.Cut(rest, ":")
	model, err := url.PathUnescape(rest)
	require.NoError(t, err)
	return model
}

// eachRecording calls f for every recording that is the adapter's.
func eachRecording(t *testing.T, f func(t *testing.T, at string, m meta)) {
	root := filepath.Join(plugintest.Cases(t, "gemini"), "recordings")
	for folder, count := range recordings {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		require.NoError(t, err)
		n := 0
		for _, e := range entries {
			if elsewhere[folder+"/"+e.Name()] != "" {
				continue
			}
			n++
			at := filepath.Join(root, folder, e.Name())
			var m meta
			require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "meta.json"), &m))
			t.Run(e.Name(), func(t *testing.T) { f(t, at, m) })
		}
		require.Equal(t, count, n, folder)
	}
}

func TestRecordings(t *testing.T) {
	eachRecording(t, func(t *testing.T, at string, m meta) {
		g := newGuest(t, "{}")
		if m.Path != "" {
			g.Model = modelOf(t, m.Path)
		}
		body := plugintest.ReadFile(t, at, "response.body")
		if m.Status >= 300 {
			testFailure(t, g, at, m, body)
			return
		}
		if m.Endpoint == "batchEmbedContents" {
			testVectors(t, g, body)
			return
		}
		got := hear(t, g, m, string(body))
		name := filepath.Base(at)
		if file, err := os.ReadFile(filepath.Join(at, "expect.json")); err == nil {
			var want expectation
			require.NoError(t, json.Unmarshal(file, &want))
			compare(t, name, &want, &got)
		} else {
			heard, ok := unexpected[name]
			require.True(t, ok, "nobody says what is in it")
			require.Equal(t, heard, got.Text+calls(&got)+" "+got.Finish)
		}
	})
}

// unexpected is what is in the recordings without an expectation: streams that are framed as an
// array.
var unexpected = map[string]string{
	"llmgemini_gemini_nested_model_optional_0":                  `{"name":"Bob","employer":{"company_name":"TechCorp"}} stop`,
	"llmgemini_gemini_tools_1":                                  `pelican_name_generator {} tool_calls`,
	"llmgemini_gemini_tools_with_gemini_3_thought_signatures_1": `5 times 3 is 15. stop`,
}

func calls(m *plugintest.Message) string {
	var all []string
	for _, c := range m.ToolCalls {
		all = append(all, c.Name+" "+c.Arguments)
	}
	return strings.Join(all, "\n")
}

// hear plays an answer. A stream is played in several batches, and as a whole answer too, which
// all have to say the same.
func hear(t *testing.T, g *plugintest.Guest, m meta, body string) plugintest.Message {
	if m.Endpoint == "generateContent" {
		text, f, e := g.Whole("", []byte(body))
		require.Nil(t, f)
		require.Nil(t, e)
		got := plugintest.ReadWhole(t, text)
		p := g.PlayData("", []string{body}, plugintest.Apart)
		require.True(t, p.Done)
		require.Equal(t, got, plugintest.Assemble(t, p.Chunks), "as a stream")
		return got
	}
	require.Equal(t, "streamGenerateContent", m.Endpoint)
	g.Stream = true
	list := frames(t, body)
	require.NotEmpty(t, list)
	p := g.PlayData("", list, plugintest.Apart)
	require.Nil(t, p.Failure)
	require.True(t, p.Done)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		require.Equal(t, p, g.PlayData("", list, func(int) bool { return random.IntN(3) == 0 }))
	}
	require.Equal(t, p, g.PlayData("", list, plugintest.Together))
	got := plugintest.Assemble(t, p.Chunks)
	text, f, e := g.Whole("", []byte("["+strings.Join(list, ",")+"]"))
	require.Nil(t, f)
	require.Nil(t, e)
	require.Equal(t, got, plugintest.ReadWhole(t, text), "as a whole")
	require.False(t, g.PlayData("", list[:len(list)-1], plugintest.Apart).Done, "cut before its end it is not whole")
	return got
}

func compare(t *testing.T, name string, want *expectation, got *plugintest.Message) {
	require.Equal(t, want.Text, got.Text)
	require.Equal(t, want.Reasoning, got.Reasoning)
	if want.Finish != nil {
		require.Equal(t, *want.Finish, got.Finish)
	}
	require.NotNil(t, want.Usage)
	require.NotNil(t, got.Usage)
	require.Equal(t, want.Usage.Prompt, got.Usage.Prompt)
	require.Equal(t, want.Usage.Completion, got.Usage.Completion)
	require.Equal(t, want.Usage.Cached, got.Usage.Details.Cached)
	require.Equal(t, want.Usage.Reasoning, got.Usage.Completed.Reasoning)
	require.Equal(t, got.Usage.Prompt+got.Usage.Completion, got.Usage.Total)
	ids := map[string]bool{}
	for _, c := range got.ToolCalls {
		require.NotEmpty(t, c.ID)
		require.False(t, ids[c.ID], "two calls have the ID "+c.ID)
		ids[c.ID] = true
	}
	if parts, ok := streamed[name]; ok {
		require.Nil(t, want.ToolCalls)
		if parts != nil {
			require.Equal(t, strings.Join(parts, "\n"), calls(got))
			return
		}
		require.Len(t, got.ToolCalls, 1)
		var args struct {
			Recipe struct {
				Name        string
				Ingredients []struct{ Name, Amount string }
				Steps       []string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.ToolCalls[0].Arguments), &args))
		require.Equal(t, "Lasagna", args.Recipe.Name)
		require.Len(t, args.Recipe.Ingredients, 10)
		require.Equal(t, "Cook lasagna noodles according to package directions, drain and set aside.", args.Recipe.Steps[1])
		require.Len(t, args.Recipe.Steps, 10)
		return
	}
	require.Len(t, got.ToolCalls, len(want.ToolCalls))
	for i, c := range want.ToolCalls {
		require.Equal(t, c.Name, got.ToolCalls[i].Name)
		require.JSONEq(t, string(c.Arguments), got.ToolCalls[i].Arguments)
	}
}

func testFailure(t *testing.T, g *plugintest.Guest, at string, m meta, body []byte) {
	var header map[string]string
	require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "response.headers.json"), &header))
	f := g.Classify(m.Status, header, body)
	want, ok := failures[filepath.Base(at)]
	require.True(t, ok)
	require.Equal(t, want.class, f.Class)
	require.Equal(t, want.code, f.Code)
	require.Equal(t, want.retry, f.RetryAfter)
	require.Equal(t, want.retry > 0, f.HasRetryAfter)
	if file, err := os.ReadFile(filepath.Join(at, "expect.json")); err == nil {
		var e expectation
		require.NoError(t, json.Unmarshal(file, &e))
		require.Equal(t, e.Error.Status, m.Status)
		require.Contains(t, f.Message, e.Error.Message)
		require.Equal(t, e.Error.Type, f.Type)
	}
	// The same inside of an answer that began well.
	p := g.PlayData("", []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, string(body)}, plugintest.Apart)
	require.NotNil(t, p.Failure)
	require.Equal(t, want.class, p.Failure.Class)
	require.EqualValues(t, m.Status, p.Failure.Status)
	require.Len(t, p.Chunks, 1)
}

func testVectors(t *testing.T, g *plugintest.Guest, body []byte) {
	g.Endpoint = "embeddings"
	s, e := g.Request(`{"model":"m","input":"a"}`)
	require.Nil(t, e)
	text, f, e := g.Whole(s.State, body)
	require.Nil(t, f)
	require.Nil(t, e)
	var got struct {
		Data []struct{ Embedding []json.Number }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	var want struct {
		Embeddings []struct{ Values []json.Number }
	}
	require.NoError(t, json.Unmarshal(body, &want))
	require.Len(t, got.Data, 1)
	require.Equal(t, want.Embeddings[0].Values, got.Data[0].Embedding)
}
