package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// casesDir is where recordings of real providers are, outside the project; "" when they are not
// there.
func casesDir() string {
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "recordings")); err != nil {
		return ""
	}
	return dir
}

// speakers are the recorded providers that speak OpenAI's format.
var speakers = []string{
	"openai", "azure", "groq", "mistral", "deepseek", "xai", "openrouter", "perplexity",
	"zai", "huggingface", "together", "cerebras", "gpustack", "avian",
}

type recording struct {
	name     string
	endpoint Endpoint
	stream   bool
	status   int
	request  []byte
	body     []byte
	expect   *expectation
}

type expectation struct {
	Text      *string
	ToolCalls []struct {
		Name      string
		Arguments any
	} `json:"tool_calls"`
	FinishReason  *string         `json:"finish_reason"`
	Usage         *expectedUsage  `json:"usage"`
	ReasoningText *string         `json:"reasoning_text"`
	Refusal       json.RawMessage `json:"refusal"`
	Error         *struct {
		UpstreamStatus  int    `json:"upstream_status"`
		MessageContains string `json:"message_contains"`
		ProviderType    any    `json:"provider_type"`
		ProviderCode    any    `json:"provider_code"`
		ClientStatus    int    `json:"client_status"`
	} `json:"error"`
	StreamError     bool   `json:"stream_error"`
	MessageContains string `json:"message_contains"`
}

type expectedUsage struct {
	Prompt     int64  `json:"prompt_tokens"`
	Completion int64  `json:"completion_tokens"`
	Cached     *int64 `json:"cached_tokens"`
	Reasoning  *int64 `json:"reasoning_tokens"`
	CacheWrite *int64 `json:"cache_write_tokens"`
}

var recordedEndpoints = map[string]Endpoint{
	"chat.completions": ChatCompletions, "responses": Responses, "completions": Completions, "embeddings": Embeddings,
}

func recordings(t *testing.T) (all []recording) {
	dir := casesDir()
	if dir == "" {
		t.Skip("no recordings of real providers: set INTERLOCK_CASES to a folder that has them")
	}
	for _, p := range speakers {
		metas, err := filepath.Glob(filepath.Join(dir, "recordings", p, "*", "meta.json"))
		require.NoError(t, err)
		require.NotEmpty(t, metas, p)
		for _, meta := range metas {
			if r, ok := readRecording(t, filepath.Dir(meta)); ok {
				r.name = p + "/" + r.name
				all = append(all, r)
			}
		}
	}
	return all
}

func readRecording(t *testing.T, dir string) (recording, bool) {
	var meta struct {
		Endpoint string
		Stream   bool
		Status   int
	}
	require.NoError(t, json.Unmarshal(readFile(t, dir, "meta.json"), &meta))
	e, ok := recordedEndpoints[meta.Endpoint]
	if !ok {
		return recording{}, false
	}
	r := recording{name: filepath.Base(dir), endpoint: e, stream: meta.Stream, status: meta.Status, body: readFile(t, dir, "response.body")}
	r.request, _ = os.ReadFile(filepath.Join(dir, "request.json"))
	if b, err := os.ReadFile(filepath.Join(dir, "expect.json")); err == nil {
		require.NoError(t, json.Unmarshal(b, &r.expect), dir)
	}
	return r, true
}

func readFile(t *testing.T, dir, name string) []byte {
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return b
}

// outcome is what one way of reading an answer found.
type outcome struct {
	down     string
	ending   Ending
	steps    map[Step]int
	failure  UpstreamError
	finish   string
	text     string
	usage    Usage
	hasUsage bool
	calls    []ToolCall
	products Product
	model    string
	partial  string
}

// replay feeds a recorded stream, cut every n bytes, through a splitter and a stream.
func replay(t require.TestingT, s *Stream, e Endpoint, o StreamOptions, body []byte, n int) outcome {
	var cuts []int
	for at := n; at < len(body); at += n {
		cuts = append(cuts, at)
	}
	return replayCuts(t, s, e, o, body, cuts)
}

func replayCuts(t require.TestingT, s *Stream, e Endpoint, o StreamOptions, body []byte, cuts []int) outcome {
	var split Splitter
	var ev Event
	out := outcome{steps: make(map[Step]int)}
	s.Reset(e, o)
	var down []byte
	over := false
	take := func() {
		if over {
			return
		}
		var step Step
		down, step = s.Event(down, &ev)
		out.steps[step]++
		over = step == Done || step == Failed
	}
	from := 0
	for _, to := range append(cuts, len(body)) {
		split.Feed(append([]byte(nil), body[from:to]...))
		from = to
		for {
			ok, err := split.Next(&ev)
			require.NoError(t, err)
			if !ok {
				break
			}
			take()
		}
	}
	if ok, _ := split.Flush(&ev); ok {
		take()
	}
	down, out.ending = s.End(down)
	out.down = string(down)
	out.failure, out.finish, out.text, out.calls = s.Failure(), s.Finish(0), string(s.Text(0)), s.ToolCalls()
	for i := range out.calls {
		out.calls[i].Arguments = append([]byte(nil), out.calls[i].Arguments...)
	}
	out.usage, out.hasUsage = s.Usage()
	out.products, out.model = s.Products(), s.Model()
	if out.ending != Whole {
		p := NewError(PartialStream, "upstream connection lost")
		p.RequestID = "req_1"
		out.partial = string(s.AppendPartialEnd(nil, p))
	}
	return out
}

func TestRecordings(t *testing.T) {
	var stream Stream
	var answer Answer
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			switch {
			case r.status >= 400 || r.expect != nil && r.expect.Error != nil:
				checkError(t, r)
			case r.stream:
				checkStream(t, &stream, r)
			default:
				checkAnswer(t, &answer, r)
			}
		})
	}
}

func checkError(t *testing.T, r recording) {
	u, ok := ReadError(r.body)
	require.True(t, ok)
	require.NotEmpty(t, u.Message)
	if r.expect == nil || r.expect.Error == nil {
		return
	}
	want := r.expect.Error
	require.Contains(t, u.Message, want.MessageContains)
	require.Equal(t, word(want.ProviderType), u.Type)
	require.Equal(t, word(want.ProviderCode), u.Code)
	require.Equal(t, want.ClientStatus, FromUpstream(want.UpstreamStatus, u).Status)
}

func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func checkStream(t *testing.T, s *Stream, r recording) {
	o := StreamOptions{KeepText: true, IncludeUsage: true, Model: "filled-in"}
	whole := replayCuts(t, s, r.endpoint, o, r.body, nil)
	for _, n := range []int{1, 7, 1000} {
		require.Equal(t, whole, replay(t, s, r.endpoint, o, r.body, n), "cut every %d bytes", n)
	}
	if r.expect == nil {
		return
	}
	if r.expect.StreamError {
		require.Equal(t, Errored, whole.ending)
		require.Equal(t, 1, whole.steps[Failed])
		require.Contains(t, whole.failure.Message, r.expect.MessageContains)
		return
	}
	require.Zero(t, whole.steps[Malformed])
	require.Zero(t, whole.steps[Failed], whole.failure)
	checkFacts(t, r, whole)
	checkDownstream(t, r, whole)

	// A caller that did not ask gets the same without the usage.
	o.IncludeUsage = false
	hidden := replay(t, s, r.endpoint, o, r.body, 100)
	checkFacts(t, r, hidden)
	checkHidden(t, r, hidden.down)
}

func checkFacts(t *testing.T, r recording, got outcome) {
	want := r.expect
	if want.FinishReason != nil {
		require.Equal(t, Whole, got.ending)
		require.Equal(t, *want.FinishReason, got.finish)
	}
	if want.Text != nil {
		require.Equal(t, *want.Text, got.text)
	}
	checkCalls(t, r, got.calls)
	if want.Usage != nil {
		require.True(t, got.hasUsage)
		require.Equal(t, want.Usage.Prompt, got.usage.Input)
		require.Equal(t, want.Usage.Completion, got.usage.Output)
		if want.Usage.Cached != nil {
			require.Equal(t, *want.Usage.Cached, got.usage.Cached)
		}
		if want.Usage.Reasoning != nil {
			require.Equal(t, *want.Usage.Reasoning, got.usage.Reasoning)
		}
		if want.Usage.CacheWrite != nil {
			require.Equal(t, *want.Usage.CacheWrite, got.usage.CacheWrite)
		}
	}
	if want.ReasoningText != nil && *want.ReasoningText != "" {
		require.NotZero(t, got.products&Reasoning)
	}
	require.NotEmpty(t, got.model)
}

func checkCalls(t *testing.T, r recording, calls []ToolCall) {
	n := 0
	for _, c := range calls {
		if c.Custom || c.Choice != 0 {
			continue
		}
		require.Less(t, n, len(r.expect.ToolCalls))
		want := r.expect.ToolCalls[n]
		require.Equal(t, want.Name, c.Name)
		require.Equal(t, n, c.Index)
		require.NotEmpty(t, c.ID)
		if text, ok := want.Arguments.(string); ok {
			require.Equal(t, text, string(c.Arguments))
		} else {
			var got any
			require.NoError(t, json.Unmarshal(c.Arguments, &got), "%s", c.Arguments)
			require.Equal(t, want.Arguments, got)
		}
		n++
	}
	require.Len(t, r.expect.ToolCalls, n)
}

// chatChunk is what a typed SDK reads of a chunk.
type chatChunk struct {
	Model   string
	Choices []struct {
		Index int
		Delta struct {
			Content          *string
			ReasoningContent *string `json:"reasoning_content"`
			Reasoning        *string
			ToolCalls        []struct {
				Index    *int
				ID       string
				Type     *string
				Function struct {
					Name      string
					Arguments string
				}
			} `json:"tool_calls"`
		}
		Text         string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *expectedUsage
	Error any
}

// dataOf reads the data of every event of a stream in the strictest way: one data line each.
func dataOf(t require.TestingT, down string) (data []string) {
	require.True(t, strings.HasSuffix(down, "\n\n"))
	for _, block := range strings.Split(strings.TrimSuffix(down, "\n\n"), "\n\n") {
		n := 0
		for _, line := range strings.Split(block, "\n") {
			if rest, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(rest, " "))
				n++
			}
		}
		require.Equal(t, 1, n, block)
	}
	return data
}

// checkDownstream reads what a caller gets as an SDK does.
func checkDownstream(t *testing.T, r recording, got outcome) {
	if r.endpoint == Responses {
		require.NotContains(t, got.down, "[DONE]")
		return
	}
	data := dataOf(t, got.down)
	require.Equal(t, "[DONE]", data[len(data)-1])
	text, reasoning, finish, usages := "", "", "", 0
	var names, arguments []string
	for i, d := range data[:len(data)-1] {
		var c chatChunk
		require.NoError(t, json.Unmarshal([]byte(d), &c), d)
		require.NotEmpty(t, c.Model)
		if c.Usage != nil {
			require.Empty(t, c.Choices)
			require.Equal(t, len(data)-2, i, "usage must come last")
			usages++
			require.Equal(t, r.expect.Usage.Completion, c.Usage.Completion)
			require.Equal(t, r.expect.Usage.Prompt, c.Usage.Prompt)
		}
		for _, ch := range c.Choices {
			if ch.Index != 0 {
				continue
			}
			for _, p := range []*string{ch.Delta.Content, &ch.Text} {
				if p != nil {
					text += *p
				}
			}
			for _, p := range []*string{ch.Delta.ReasoningContent, ch.Delta.Reasoning} {
				if p != nil {
					reasoning += *p
				}
			}
			if ch.FinishReason != nil && *ch.FinishReason != "" {
				finish = *ch.FinishReason
			}
			for _, call := range ch.Delta.ToolCalls {
				require.NotNil(t, call.Index)
				for len(names) <= *call.Index {
					names, arguments = append(names, ""), append(arguments, "")
				}
				if names[*call.Index] == "" {
					require.NotNil(t, call.Type)
					require.Equal(t, "function", *call.Type)
				}
				names[*call.Index] += call.Function.Name
				arguments[*call.Index] += call.Function.Arguments
			}
		}
	}
	require.Equal(t, got.text, text)
	require.Equal(t, got.finish, finish)
	require.Len(t, names, len(r.expect.ToolCalls))
	for i, c := range got.calls {
		require.Equal(t, c.Name, names[i])
		require.Equal(t, string(c.Arguments), arguments[i])
	}
	if r.expect.Usage != nil {
		require.Equal(t, 1, usages)
	}
	if r.expect.ReasoningText != nil {
		require.Contains(t, reasoning, strings.TrimSpace(*r.expect.ReasoningText))
	}
}

func checkHidden(t *testing.T, r recording, down string) {
	if r.endpoint == Responses {
		return
	}
	for _, d := range dataOf(t, down) {
		if d == "[DONE]" {
			continue
		}
		var top map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(d), &top))
		require.NotContains(t, top, "usage")
		require.Contains(t, top, "choices")
	}
}

func checkAnswer(t *testing.T, a *Answer, r recording) {
	ending := a.Scan(r.endpoint, r.body)
	require.Equal(t, Whole, ending, a.Failure())
	down := a.AppendBody(nil, r.body, AnswerOptions{})
	require.True(t, json.Valid(down))
	if r.expect != nil {
		u, ok := a.Usage()
		checkFacts(t, r, outcome{
			ending: ending, finish: a.Finish(0), text: string(a.Text(0)), calls: a.ToolCalls(),
			usage: u, hasUsage: ok, products: a.Products(), model: a.Model(),
		})
	}
	// What the caller gets reads the same, and needs nothing more.
	var again Answer
	require.Equal(t, ending, again.Scan(r.endpoint, down))
	require.Equal(t, string(a.Text(0)), string(again.Text(0)))
	require.Equal(t, a.Finish(0), again.Finish(0))
	require.Equal(t, string(down), string(again.AppendBody(nil, down, AnswerOptions{})))
	if r.endpoint == ChatCompletions {
		var typed struct {
			Choices []struct {
				Message struct{ Content *string }
				Finish  string `json:"finish_reason"`
			}
			Usage *expectedUsage
		}
		require.NoError(t, json.Unmarshal(down, &typed))
		if r.expect != nil && r.expect.Usage != nil {
			require.Equal(t, r.expect.Usage.Completion, typed.Usage.Completion)
		}
	}
}

func TestRecordedRequestsScan(t *testing.T) {
	for _, r := range recordings(t) {
		if len(r.request) == 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			var request Request
			err := ScanRequest(r.endpoint, r.request, &request)
			if err != nil {
				// Some recordings are of requests that are wrong, or name the model in the URL.
				require.True(t, r.status >= 400 || err.Param == "model", "%v", err)
				return
			}
			require.Equal(t, r.stream, request.Stream)
			out := request.AppendUpstream(nil, r.request, Edit{Model: "other"})
			want, got := decodeJSON(t, r.request), decodeJSON(t, out)
			want["model"] = "other"
			require.Equal(t, want, got)
		})
	}
}
