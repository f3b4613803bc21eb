package adapter

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Guard is a plugin that looks at requests and answers, in OpenAI's format. It sees them
// whole: unlike an adapter's, its large strings are not left outside. It is safe for
// concurrent use.
type Guard struct {
	name  string
	run   Runner
	state int
}

// NewGuard makes a guard of a plugin.
func NewGuard(name string, run Runner, m *wasm.Manifest) *Guard {
	g := &Guard{name: name, run: run, state: wasm.MaxState}
	if s := int(m.Limits.State); s > 0 && s < g.state {
		g.state = s
	}
	return g
}

// Name is the plugin's name in the configuration.
func (g *Guard) Name() string { return g.name }

// Subject is on whose behalf a guard is asked.
type Subject struct {
	Key    string
	Labels []byte // a JSON object
	Alias  string
}

// GuardState is what a guard keeps over the events of one stream. The zero value is a beginning.
type GuardState []byte

// Action is what a guard wants.
type Action = interlock.Action

// The actions.
const (
	Pass   = interlock.Pass
	Use    = interlock.Use // what it returned goes on instead
	Refuse = interlock.Refuse
)

// Verdict is what a guard decided.
type Verdict struct {
	Action  Action
	Reason  string // with Refuse: a code
	Message string // with Refuse: for the caller
}

var reasonForm = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

const maxGuardMessage = 1 << 10

// verdict reads a verdict; false where it is not as the ABI has it.
func readVerdict(r *interlock.Reader) (v Verdict, ok bool) {
	v = Verdict{Action: Action(r.U32())}
	reason, message := r.Bytes(), r.Bytes()
	if !r.OK() || v.Action > Refuse {
		return v, false
	}
	if v.Action == Refuse {
		if !reasonForm.Match(reason) {
			return v, false
		}
		v.Reason = string(reason)
		v.Message = string(bytes.ToValidUTF8(message[:min(len(message), maxGuardMessage)], []byte("\ufffd")))
	}
	return v, true
}

// Request asks about a caller's body. With Use the body to go on with is appended to dst.
func (g *Guard) Request(dst []byte, c *Call, s *Subject, body []byte) (Verdict, []byte, error) {
	return g.whole(dst, c, wasm.OpGuardRequest, s, body)
}

// Response asks about a whole answer.
func (g *Guard) Response(dst []byte, c *Call, s *Subject, body []byte) (Verdict, []byte, error) {
	return g.whole(dst, c, wasm.OpGuardResponse, s, body)
}

func (g *Guard) begin(c *Call, s *Subject) *interlock.Writer {
	w := c.begin().context(c)
	w.U32(uint32(3*4 + len(s.Key) + len(s.Labels) + len(s.Alias))) // #nosec G115 -- from the configuration
	w.Str(s.Key)
	w.Bytes(s.Labels)
	w.Str(s.Alias)
	return w
}

func (g *Guard) broken(reason, what string) error { return brokenBy(g.run, g.name, reason, what) }

func (g *Guard) whole(dst []byte, c *Call, op wasm.Op, s *Subject, body []byte) (Verdict, []byte, error) {
	g.begin(c, s).Bytes(body)
	r, err := c.call(g.run, op)
	if err != nil {
		return Verdict{}, dst, &Broken{err}
	}
	v, ok := readVerdict(&r)
	if !ok {
		return Verdict{}, dst, g.broken(refusedVerdict, op.String()+": the result is not as the ABI has it")
	}
	if v.Action == Use {
		out := r.Bytes()
		if !r.OK() || !jsonx.Valid(out) {
			return Verdict{}, dst, g.broken(refusedBody, op.String()+": the body returned is not JSON")
		}
		dst = append(dst, out...)
	}
	return v, dst, nil
}

var doneMarker = []byte("[DONE]")

// Events asks about events that are about to be released: released holds them as server-sent
// events. What may go is appended to dst, which must not overlap with released. The end marker
// is not shown to the guard and stays.
func (g *Guard) Events(dst []byte, c *Call, s *Subject, state *GuardState, ended bool, released []byte) (Verdict, []byte, error) {
	w := g.begin(c, s)
	w.Bytes(*state)
	flags := uint32(0)
	if ended {
		flags = 1
	}
	w.U32(flags)
	at, n := len(*w), 0
	w.U32(0)
	var marker []byte
	var in openai.Splitter
	var ev openai.Event
	in.Max = len(released) + 1
	in.Feed(released)
	for {
		ok, err := in.Next(&ev)
		if err != nil {
			return Verdict{}, dst, &Broken{err}
		}
		if !ok {
			break
		}
		switch {
		case ev.Data == nil:
		case bytes.Equal(ev.Data, doneMarker):
			marker = append(marker, ev.Raw...)
		default:
			w.Bytes(ev.Name)
			w.Bytes(ev.Data)
			n++
		}
	}
	setU32((*w)[at:], n)
	r, err := c.call(g.run, wasm.OpGuardEvents)
	if err != nil {
		return Verdict{}, dst, &Broken{err}
	}
	v, ok := readVerdict(&r)
	kept := r.Bytes()
	switch {
	case !ok || !r.OK():
		return Verdict{}, dst, g.broken(refusedVerdict, "guard_events: the result is not as the ABI has it")
	case len(kept) > g.state:
		return Verdict{}, dst, g.broken(refusedState, fmt.Sprintf("guard_events: a state of %d bytes, at most %d are allowed", len(kept), g.state))
	}
	*state = append((*state)[:0], kept...)
	switch v.Action {
	case Pass:
		return v, append(dst, released...), nil
	case Refuse:
		return v, dst, nil
	}
	start := len(dst)
	for n := r.Count(8); n > 0; n-- {
		name, data := r.Bytes(), r.Bytes()
		if bytes.ContainsAny(name, "\r\n\x00") || bytes.ContainsAny(data, "\r\n") || !jsonx.Valid(data) {
			return Verdict{}, dst[:start], g.broken(refusedEvent, "guard_events: an event is not JSON on one line")
		}
		dst = appendEvent(dst, name, data)
	}
	if !r.OK() {
		return Verdict{}, dst[:start], g.broken(refusedResult, "guard_events: the result is not as the ABI has it")
	}
	return v, append(dst, marker...), nil
}
