package plugintest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Guest speaks the plugin ABI with the native build of an adapter, as the host does.
type Guest struct {
	T *testing.T
	G *interlock.Guest

	Model, Endpoint string
	Stream          bool
	// Framing is what every request must ask for; nil = anything.
	Framing *interlock.Framing
}

// NewGuest configures a guest, which must succeed, for chat completions of a model.
func NewGuest(t *testing.T, guest *interlock.Guest, model, config string) *Guest {
	t.Helper()
	g := &Guest{T: t, G: guest, Model: model, Endpoint: "chat_completions"}
	w := interlock.Writer(g.Context())
	w.Str(config)
	out, failed := g.G.Call(interlock.OpConfigure, w, nil)
	require.False(t, failed, "%q", out)
	return g
}

// Context is what every call begins with.
func (g *Guest) Context() []byte {
	var c, w interlock.Writer
	c.Bool(g.Stream)
	c.U64(1_700_000_000_000)
	c.Str(g.Endpoint)
	c.Str(g.Model)
	c.Str("req-1")
	w.Bytes(c)
	return w
}

// Sent is a request as the guest shapes it.
type Sent struct {
	Path, ContentType, State, Body string
	Header                         []string
	Framing                        interlock.Framing
}

// Request has the guest shape a caller's body, or refuse it.
func (g *Guest) Request(body string) (s Sent, e *interlock.Error) {
	w := interlock.Writer(g.Context())
	w.Str(body)
	out, failed := g.G.Call(interlock.OpRequest, w, nil)
	r := interlock.NewReader(out)
	if failed {
		return s, readError(&r)
	}
	require.Zero(g.T, r.U32())
	require.Equal(g.T, "POST", r.Str())
	s.Path = r.Str()
	for n := r.U32(); n > 0; n-- {
		s.Header = append(s.Header, r.Str()+": "+r.Str())
	}
	s.ContentType, s.Framing = r.Str(), interlock.Framing(r.U32())
	require.Equal(g.T, "application/json", s.ContentType)
	if g.Framing != nil {
		require.Equal(g.T, *g.Framing, s.Framing)
	}
	s.State, s.Body = r.Str(), r.Str()
	require.True(g.T, r.OK())
	require.True(g.T, json.Valid([]byte(s.Body)), s.Body)
	return s, nil
}

// Body is the provider's request that comes of the members of a caller's, as a value.
func (g *Guest) Body(members string) map[string]any {
	s, e := g.Request(`{` + members + `}`)
	require.Nil(g.T, e)
	var v map[string]any
	require.NoError(g.T, json.Unmarshal([]byte(s.Body), &v))
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

// Answer makes one of the calls that are given a provider's answer.
func (g *Guest) Answer(op uint32, state string, status int, header map[string]string, body []byte) (interlock.Reader, bool) {
	w := interlock.Writer(g.Context())
	w.Str(state)
	w.U32(uint32(status))
	w.U32(uint32(len(header)))
	for name, value := range header {
		w.Str(name)
		w.Str(value)
	}
	w.Bytes(body)
	out, failed := g.G.Call(op, w, nil)
	return interlock.NewReader(out), failed
}

// Classify has the guest read an error.
func (g *Guest) Classify(status int, header map[string]string, body []byte) *interlock.Failure {
	r, failed := g.Answer(interlock.OpClassify, "", status, header, body)
	require.False(g.T, failed)
	f := readFailure(&r)
	require.True(g.T, r.OK())
	return f
}

// Whole is a whole answer: its body, or how it failed.
func (g *Guest) Whole(state string, body []byte) (string, *interlock.Failure, *interlock.Error) {
	r, failed := g.Answer(interlock.OpResponse, state, 200, nil, body)
	if failed {
		return "", nil, readError(&r)
	}
	bad := r.U32() == 1
	text := r.Str()
	var f *interlock.Failure
	if bad {
		f = readFailure(&r)
	}
	require.True(g.T, r.OK())
	return text, f, nil
}

// Played is what came of a stream.
type Played struct {
	Names, Chunks []string
	Done          bool
	Failure       *interlock.Failure
}

// Play sends frames in batches that end where cut says.
func (g *Guest) Play(state string, frames []interlock.Frame, cut func(i int) bool) (p Played) {
	step := func(batch []interlock.Frame, ended bool) {
		w := interlock.Writer(g.Context())
		w.Str(state)
		w.Bool(ended)
		w.U32(uint32(len(batch)))
		for _, f := range batch {
			w.Str(f.Name)
			w.Bytes(f.Data)
		}
		out, failed := g.G.Call(interlock.OpEvents, w, nil)
		require.False(g.T, failed, "%q", out)
		r := interlock.NewReader(out)
		flags := r.U32()
		state = strings.Clone(r.Str())
		for n := r.U32(); n > 0; n-- {
			p.Names = append(p.Names, strings.Clone(r.Str()))
			p.Chunks = append(p.Chunks, strings.Clone(r.Str()))
		}
		p.Done = flags&1 != 0
		if flags&2 != 0 {
			p.Failure = readFailure(&r)
		}
		require.True(g.T, r.OK())
		require.LessOrEqual(g.T, len(state), interlock.MaxState)
	}
	from := 0
	for i := range frames {
		if i < len(frames)-1 && !cut(i) {
			continue
		}
		step(frames[from:i+1], false)
		from = i + 1
		if p.Done || p.Failure != nil {
			return p
		}
	}
	step(nil, true)
	return p
}

// PlayData is Play for frames without names, out of which only chunks without names may come.
func (g *Guest) PlayData(state string, data []string, cut func(i int) bool) Played {
	frames := make([]interlock.Frame, len(data))
	for i := range data {
		frames[i].Data = []byte(data[i])
	}
	p := g.Play(state, frames, cut)
	for _, name := range p.Names {
		require.Empty(g.T, name)
	}
	return p
}

// Apart and Together are ways to cut a stream: each frame by itself, and all of them in one call.
func Apart(int) bool    { return true }
func Together(int) bool { return false }
