package cohere_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/cohere"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "command-a-03-2025"

type guest struct {
	t *testing.T
	g *interlock.Guest

	model, endpoint string
	stream          bool
}

func newGuest(t *testing.T, config string) *guest {
	g := &guest{t: t, g: interlock.NewGuest(cohere.Manifest, cohere.New), model: testModel, endpoint: "chat_completions"}
	w := interlock.Writer(g.context())
	w.Str(config)
	out, failed := g.g.Call(interlock.OpConfigure, w, nil)
	require.False(t, failed, "%q", out)
	return g
}

func (g *guest) context() []byte {
	var c, w interlock.Writer
	c.Bool(g.stream)
	c.U64(1_700_000_000_000)
	c.Str(g.endpoint)
	c.Str(g.model)
	c.Str("req-1")
	w.Bytes(c)
	return w
}

type sent struct {
	path, state, body string
	header            []string
}

func (g *guest) request(body string) (s sent, e *interlock.Error) {
	w := interlock.Writer(g.context())
	w.Str(body)
	out, failed := g.g.Call(interlock.OpRequest, w, nil)
	r := interlock.NewReader(out)
	if failed {
		return s, readError(&r)
	}
	require.Zero(g.t, r.U32())
	require.Equal(g.t, "POST", r.Str())
	s.path = r.Str()
	for n := r.U32(); n > 0; n-- {
		s.header = append(s.header, r.Str()+": "+r.Str())
	}
	require.Equal(g.t, "application/json", r.Str())
	require.Equal(g.t, interlock.ByContentType, interlock.Framing(r.U32()))
	s.state, s.body = r.Str(), r.Str()
	require.True(g.t, r.OK())
	require.True(g.t, json.Valid([]byte(s.body)), s.body)
	return s, nil
}

// body is the provider's request that comes of the members of a caller's, as a value.
func (g *guest) body(members string) object {
	s, e := g.request(`{` + members + `}`)
	require.Nil(g.t, e)
	var v object
	require.NoError(g.t, json.Unmarshal([]byte(s.body), &v))
	return v
}

func readError(r *interlock.Reader) *interlock.Error {
	return &interlock.Error{Code: r.Str(), Message: r.Str(), Param: r.Str(), Status: r.U32()}
}

func readFailure(r *interlock.Reader) *interlock.Failure {
	f := &interlock.Failure{Class: r.Str(), Code: r.Str(), Type: r.Str(), Message: r.Str(), Param: r.Str(), Status: r.U32()}
	f.HasRetryAfter, f.RetryAfter = r.Bool(), r.U64()
	return f
}

func (g *guest) answer(op uint32, state string, status int, header map[string]string, body []byte) (interlock.Reader, bool) {
	w := interlock.Writer(g.context())
	w.Str(state)
	w.U32(uint32(status))
	w.U32(uint32(len(header)))
	for name, value := range header {
		w.Str(name)
		w.Str(value)
	}
	w.Bytes(body)
	out, failed := g.g.Call(op, w, nil)
	return interlock.NewReader(out), failed
}

func (g *guest) classify(status int, header map[string]string, body []byte) *interlock.Failure {
	r, failed := g.answer(interlock.OpClassify, "", status, header, body)
	require.False(g.t, failed)
	f := readFailure(&r)
	require.True(g.t, r.OK())
	return f
}

// whole is a whole answer: its body, or how it failed.
func (g *guest) whole(state string, body []byte) (string, *interlock.Failure, *interlock.Error) {
	r, failed := g.answer(interlock.OpResponse, state, 200, nil, body)
	if failed {
		return "", nil, readError(&r)
	}
	bad := r.U32() == 1
	text := r.Str()
	var f *interlock.Failure
	if bad {
		f = readFailure(&r)
	}
	require.True(g.t, r.OK())
	return text, f, nil
}

type played struct {
	chunks  []string
	done    bool
	failure *interlock.Failure
}

// play sends frames in batches that end where cut says.
func (g *guest) play(state string, frames []string, cut func(i int) bool) (p played) {
	step := func(batch []string, ended bool) {
		w := interlock.Writer(g.context())
		w.Str(state)
		w.Bool(ended)
		w.U32(uint32(len(batch)))
		for _, f := range batch {
			w.Str("")
			w.Str(f)
		}
		out, failed := g.g.Call(interlock.OpEvents, w, nil)
		require.False(g.t, failed, "%q", out)
		r := interlock.NewReader(out)
		flags := r.U32()
		state = strings.Clone(r.Str())
		for n := r.U32(); n > 0; n-- {
			require.Empty(g.t, r.Str())
			p.chunks = append(p.chunks, strings.Clone(r.Str()))
		}
		p.done = flags&1 != 0
		if flags&2 != 0 {
			p.failure = readFailure(&r)
		}
		require.True(g.t, r.OK())
		require.LessOrEqual(g.t, len(state), interlock.MaxState)
	}
	from := 0
	for i := range frames {
		if i < len(frames)-1 && !cut(i) {
			continue
		}
		step(frames[from:i+1], false)
		from = i + 1
		if p.done || p.failure != nil {
			return p
		}
	}
	step(nil, true)
	return p
}

func apart(int) bool    { return true }
func together(int) bool { return false }

// message is an answer as a caller's SDK puts it together.
type message struct {
	Text, Reasoning string
	ToolCalls       []toolCall
	ProviderData    []json.RawMessage
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
	Completed struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

type said struct {
	Content      string            `json:"content"`
	Reasoning    string            `json:"reasoning_content"`
	ProviderData []json.RawMessage `json:"provider_data"`
	ToolCalls    []struct {
		Index    int
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

type wire struct {
	ID      string
	Choices []struct {
		Index          int
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
			m.ProviderData = append(m.ProviderData, c.Delta.ProviderData...)
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
	m = message{Text: c.Message.Content, Reasoning: c.Message.Reasoning, ProviderData: c.Message.ProviderData, Finish: c.Finish, Usage: w.Usage}
	for _, call := range c.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, toolCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return m
}

// casesDir is the folder of the cases, which a stranger's clone has not.
func casesDir(t *testing.T) string {
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "recordings", "cohere")); err != nil {
		t.Skip("no recordings of real providers here: set INTERLOCK_CASES to a folder that has them")
	}
	return dir
}

func readFile(t *testing.T, path ...string) []byte {
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return b
}

type object = map[string]any

func list(v any) (all []object) {
	items, _ := v.([]any)
	for _, item := range items {
		o, _ := item.(object)
		all = append(all, o)
	}
	return all
}
