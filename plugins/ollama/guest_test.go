package ollama_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/ollama"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "llama3.2"

type guest struct {
	t *testing.T
	g *interlock.Guest

	model, endpoint string
	stream          bool
}

func newGuest(t *testing.T, config string) *guest {
	g := &guest{t: t, g: interlock.NewGuest(ollama.Manifest, ollama.New), model: testModel, endpoint: "chat_completions"}
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
	path, contentType, state, body string
	header                         []string
	framing                        interlock.Framing
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
	s.contentType, s.framing = r.Str(), interlock.Framing(r.U32())
	s.state, s.body = r.Str(), r.Str()
	require.True(g.t, r.OK())
	require.True(g.t, json.Valid([]byte(s.body)), s.body)
	return s, nil
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
	names   []string
	done    bool
	failure *interlock.Failure
}

// play sends frames in batches that end where cut says.
func (g *guest) play(state string, frames []interlock.Frame, cut func(i int) bool) (p played) {
	step := func(batch []interlock.Frame, ended bool) {
		w := interlock.Writer(g.context())
		w.Str(state)
		w.Bool(ended)
		w.U32(uint32(len(batch)))
		for _, f := range batch {
			w.Str(f.Name)
			w.Bytes(f.Data)
		}
		out, failed := g.g.Call(interlock.OpEvents, w, nil)
		require.False(g.t, failed, "%q", out)
		r := interlock.NewReader(out)
		flags := r.U32()
		state = strings.Clone(r.Str())
		for n := r.U32(); n > 0; n-- {
			p.names = append(p.names, strings.Clone(r.Str()))
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

// casesDir is the folder of the cases, which a stranger's clone has not.
func casesDir(t *testing.T) string {
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "recordings", "ollama")); err != nil {
		t.Skip("no recordings of real providers here: set INTERLOCK_CASES to a folder that has them")
	}
	return dir
}

func readFile(t *testing.T, path ...string) []byte {
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return b
}
