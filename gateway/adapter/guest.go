package adapter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Runner runs the functions of a plugin: *wasm.Plugin, or the native build of the same source.
type Runner interface {
	Call(wait wasm.Wait, op wasm.Op, in, dst []byte) ([]byte, error)
}

// Guest is an adapter whose mapping is a plugin's. It frames what the provider sends, calls
// the plugin, and checks what the plugin returns before any of it is used.
type Guest struct {
	name      string
	run       Runner
	manifest  *wasm.Manifest
	endpoints map[string]bool
	maxEvent  int
	state     int // the most that a state may be, in bytes
}

// NewGuest makes the adapter of a plugin. name is as the configuration has it
// ("plugin:anthropic"); maxEvent is the largest frame accepted, in bytes; 0 is openai.MaxEvent.
func NewGuest(name string, run Runner, m *wasm.Manifest, maxEvent int) *Guest {
	g := &Guest{name: name, run: run, manifest: m, endpoints: map[string]bool{}, maxEvent: maxEvent, state: wasm.MaxState}
	for _, e := range m.Endpoints {
		g.endpoints[e] = true
	}
	if maxEvent == 0 {
		g.maxEvent = openai.MaxEvent
	}
	if s := int(m.Limits.State); s > 0 && s < g.state {
		g.state = s
	}
	return g
}

// Name implements Adapter.
func (g *Guest) Name() string { return g.name }

// Serves implements Adapter.
func (g *Guest) Serves(e openai.Endpoint) bool { return g.endpoints[e.String()] }

// Manifest returns what the plugin is. It must not be changed.
func (g *Guest) Manifest() *wasm.Manifest { return g.manifest }

const keepBuffer = 256 << 10 // the largest buffer that outlives the call that needed it

// session is what the operations on one attempt share.
type session struct {
	in, out []byte
	state   []byte
	blobs   blobs
	framing interlock.Framing
	header  []Field
}

var sessions = sync.Pool{New: func() any { return new(session) }}

func (c *Call) begin() *session {
	if c.session == nil {
		c.session = sessions.Get().(*session)
	}
	return c.session
}

func (s *session) release() {
	s.blobs.reset()
	s.in, s.out, s.state = modest(s.in), modest(s.out), modest(s.state)
	clear(s.header)
	s.header, s.framing = s.header[:0], interlock.ByContentType
	sessions.Put(s)
}

func modest(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// context begins an input.
func (s *session) context(c *Call) *interlock.Writer {
	w := (*interlock.Writer)(&s.in)
	*w = (*w)[:0]
	endpoint := c.Request.Endpoint.String()
	flags := uint32(0)
	if c.Request.Stream {
		flags = 1
	}
	w.U32(uint32(4 + 8 + 3*4 + len(endpoint) + len(c.Model) + len(c.ID))) // #nosec G115 -- names
	w.U32(flags)
	w.U64(uint64(max(0, c.Now.UnixMilli()))) // #nosec G115 -- not negative
	w.Str(endpoint)
	w.Str(c.Model)
	w.Str(c.ID)
	return w
}

// call runs an operation on what is in the session's input.
func (c *Call) call(run Runner, op wasm.Op) (interlock.Reader, error) {
	s := c.session
	out, err := run.Call(wasm.Wait{Deadline: c.Deadline, Cancel: c.Gone}, op, s.in, s.out[:0])
	s.out = out
	if err != nil {
		return interlock.Reader{}, err
	}
	return interlock.NewReader(out), nil
}

// Request implements Adapter.
func (g *Guest) Request(dst []byte, c *Call) (Shaped, error) {
	s := c.begin()
	w := s.context(c)
	at := len(*w)
	w.U32(0)
	if short, ok := s.blobs.remove(*w, c.Body); ok {
		*w = short
	} else {
		*w = append(*w, c.Body...)
	}
	setU32((*w)[at:], len(*w)-at-4)
	r, err := c.call(g.run, wasm.OpRequest)
	if err != nil {
		return Shaped{}, g.refusal(err)
	}
	kind := r.U32()
	shaped := Shaped{Accept: g.accepts(), Method: strings.Clone(r.Str()), Path: strings.Clone(r.Str())}
	s.header = s.header[:0]
	for n := r.Count(8); n > 0; n-- {
		s.header = append(s.header, Field{strings.Clone(r.Str()), strings.Clone(r.Str())})
	}
	shaped.ContentType, s.framing = strings.Clone(r.Str()), interlock.Framing(r.U32())
	state, body := r.Bytes(), r.Bytes()
	switch {
	case !r.OK() || kind != 0:
		return Shaped{}, g.broken(refusedResult, "request: the result is not as the ABI has it")
	case s.framing > interlock.JSONArray:
		return Shaped{}, g.broken(refusedResult, "request: framing "+strconv.Itoa(int(s.framing))+" does not exist")
	case len(state) > g.state:
		return Shaped{}, g.broken(refusedState, fmt.Sprintf("request: a state of %d bytes, at most %d are allowed", len(state), g.state))
	}
	shaped.Header = s.header
	if reason, err := g.checkShaped(&shaped, body); err != nil {
		refused(g.run, reason)
		return Shaped{}, &Broken{err}
	}
	s.state = append(s.state[:0], state...)
	if shaped.Body, err = s.blobs.restore(dst, body); err != nil {
		return Shaped{}, g.broken(refusedBody, "request: "+err.Error())
	}
	s.blobs.reset()
	return shaped, nil
}

func setU32(b []byte, n int) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
}

// refusal says whose fault an error of the request operation is.
func (g *Guest) refusal(err error) error {
	e, ok := errors.AsType[*wasm.GuestError](err)
	if ok && (e.Code == wasm.CodeBadRequest || e.Code == wasm.CodeUnsupportedParameter) {
		return &Refusal{Code: e.Code, Message: e.Message, Param: e.Param, Status: e.Status}
	}
	return &Broken{err}
}

func (g *Guest) broken(reason, what string) error { return brokenBy(g.run, g.name, reason, what) }

// What of a plugin's result is refused: the values of the metric's label, beside the reasons of a
// wasm.Failure.
const (
	refusedResult  = "result" // its encoding, or a field that no part below is about
	refusedMethod  = "method"
	refusedPath    = "path"
	refusedHeader  = "header"
	refusedBody    = "body"
	refusedEvent   = "event"
	refusedState   = "state"
	refusedFailure = "failure"
	refusedVerdict = "verdict"
)

func brokenBy(run Runner, name, reason, what string) error {
	refused(run, reason)
	return &Broken{errors.New(name + ": " + what)}
}

// refused counts a result that was not taken, where the plugin's runner counts: *wasm.Plugin does.
func refused(run Runner, reason string) {
	if c, ok := run.(interface{ Refused(reason string) }); ok {
		c.Refused(reason)
	}
}

// Streams implements Adapter.
func (g *Guest) Streams(c *Call, contentType []byte) bool {
	s := c.begin()
	if len(contentType) == 0 {
		return s.framing != interlock.ByContentType
	}
	for _, t := range g.manifest.ContentTypes.Events {
		if HasFold(contentType, t) {
			if s.framing == interlock.ByContentType {
				s.framing = framingOf(contentType)
			}
			return true
		}
	}
	return false
}

// framingOf is how an answer of that content type is cut.
func framingOf(contentType []byte) interlock.Framing {
	switch {
	case HasFold(contentType, "ndjson"), HasFold(contentType, "jsonl"), HasFold(contentType, "json-lines"), HasFold(contentType, "json-seq"):
		return interlock.Lines
	case HasFold(contentType, "vnd.amazon.eventstream"):
		return interlock.AWSEventStream
	case HasFold(contentType, "application/json"):
		return interlock.JSONArray
	default:
		return interlock.SSE
	}
}

// accepts is what a streamed answer may come in.
func (g *Guest) accepts() string {
	if t := g.manifest.ContentTypes.Events; len(t) > 0 {
		return t[0]
	}
	return ""
}

// HasFold says whether b, such as a content type, has a text in it, whatever its case; lower is in
// lower case.
func HasFold(b []byte, lower string) bool {
	for ; len(b) >= len(lower); b = b[1:] {
		if equalFold(b[:len(lower)], lower) {
			return true
		}
	}
	return false
}

func equalFold(b []byte, lower string) bool {
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// alwaysHanded are headers of an answer that a guest gets besides those of its manifest.
var alwaysHanded = []string{"content-type", "retry-after", "retry-after-ms", "date"}

// answer continues an input with an answer: state, status, headers, body.
func (g *Guest) answer(w *interlock.Writer, s *session, a Answer, body []byte) {
	w.Bytes(s.state)
	w.U32(uint32(a.Status())) // #nosec G115 -- three digits
	at := len(*w)
	w.U32(0)
	n := 0
	add := func(name string) {
		if v := a.Header(name); v != nil {
			w.Str(name)
			w.Bytes(v[:min(len(v), maxHeaderValue)])
			n++
		}
	}
	for _, name := range alwaysHanded {
		add(name)
	}
	for _, name := range g.manifest.ResponseHeaders {
		if !slices.Contains(alwaysHanded, name) {
			add(name)
		}
	}
	setU32((*w)[at:], n)
	w.Bytes(body)
}

// Response implements Adapter.
func (g *Guest) Response(dst []byte, c *Call, a Answer, body []byte) ([]byte, error) {
	s := c.begin()
	w := s.context(c)
	g.answer(w, s, a, body)
	r, err := c.call(g.run, wasm.OpResponse)
	if err != nil {
		return dst, malformedOr(err)
	}
	failed, out := r.U32(), r.Bytes()
	if failed == 1 {
		f, ok := readFailure(&r)
		if !ok {
			return dst, g.broken(refusedFailure, "response: the failure is not as the ABI has it")
		}
		return dst, &Failed{f}
	}
	if !r.OK() || failed != 0 {
		return dst, g.broken(refusedResult, "response: the result is not as the ABI has it")
	}
	if !jsonx.Valid(out) {
		return dst, g.broken(refusedBody, "response: the body is not JSON")
	}
	return append(dst, out...), nil
}

// errUpstream says that a guest found the answer malformed.
var errUpstream = errors.New("the answer is not in the provider's format")

// malformedOr is the error of an operation on an answer.
func malformedOr(err error) error {
	if e, ok := errors.AsType[*wasm.GuestError](err); ok && e.Code == wasm.CodeUpstreamMalformed {
		return fmt.Errorf("%w: %s", errUpstream, e.Message)
	}
	return &Broken{err}
}

// Classify implements Adapter. A plugin that fails here leaves the policy with the status.
func (g *Guest) Classify(c *Call, a Answer, body []byte) Failure {
	s := c.begin()
	w := s.context(c)
	g.answer(w, s, a, body)
	r, err := c.call(g.run, wasm.OpClassify)
	if err == nil {
		if f, ok := readFailure(&r); ok {
			f.Error.Status = 0 // the answer's own is known
			return f
		}
		refused(g.run, refusedFailure)
	}
	return Failure{}
}

// ClassifyError implements Adapter: a plugin reports failures by itself.
func (*Guest) ClassifyError(u openai.UpstreamError) Failure { return Failure{Error: u} }

// claimable are the classes that a guest can name.
var claimable = []failure.Class{
	failure.ClientInvalid, failure.ContextOverflow, failure.ContentFiltered, failure.RateLimited, failure.Overloaded,
	failure.ServerError, failure.Timeout, failure.UpstreamAuth, failure.ModelUnavailable, failure.MalformedAnswer,
}

const (
	maxFailureText = 16 << 10
	maxHeaderValue = 8 << 10
	maxRetryAfter  = 365 * 24 * time.Hour
)

// readFailure reads a failure; false where it is not as the ABI has it.
func readFailure(r *interlock.Reader) (f Failure, ok bool) {
	text := func() string {
		s := r.Str()
		return strings.ToValidUTF8(s[:min(len(s), maxFailureText)], "\ufffd")
	}
	class := text()
	f.Error = openai.UpstreamError{Code: text(), Type: text(), Message: text(), Param: text()}
	f.Error.Status = int(r.U32())
	flags, wait := r.U32(), r.U64()
	if !r.OK() {
		return Failure{}, false
	}
	if f.Error.Status != 0 && (f.Error.Status < 400 || f.Error.Status > 599) {
		return Failure{}, false
	}
	if class != "" {
		if f.Class, ok = failure.ParseClass(class); !ok || !slices.Contains(claimable, f.Class) {
			return Failure{}, false
		}
	}
	if flags&1 != 0 {
		f.HasRetryAfter = true
		f.RetryAfter = time.Duration(min(wait, uint64(maxRetryAfter/time.Millisecond))) * time.Millisecond // #nosec G115 -- bounded
	}
	return f, true
}

var _ Adapter = (*Guest)(nil)
