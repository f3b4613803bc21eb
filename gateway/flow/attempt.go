package flow

import (
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/sigv4"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// attempt is the running, or the latest, call to one channel.
type attempt struct {
	number    int
	open      bool // its record is open
	cause     failure.Cause
	target    *target
	candidate int // its number in the plan
	permit    route.Permit
	ticket    limit.Ticket
	gate      *limit.Gate // whose permit is held; nil = none

	call    *upstream.Call
	request upstream.Request
	as      adapter.Call
	up      []byte // the body for the provider
	head    []upstream.Field
	id      []byte // req_…-N

	mode    bodyMode
	events  adapter.Events
	stream  openai.Stream
	answer  openai.Answer
	event   openai.Event
	whole   []byte // an answer read whole, or the first bytes of an error
	spoke   bool   // meaningful output has come
	ended   bool   // the provider's end marker has come
	skipped int
	graceAt time.Time // a finished stream without its end marker is waited for until then
	byLimit bool      // the deadline in force is the caller's own
}

// bodyMode is how an answer's body is read.
type bodyMode uint8

const (
	readError  bodyMode = iota // an answer with an error status: its first bytes
	readWhole                  // one JSON value
	readStream                 // server-sent events
)

const (
	maxErrorBody = 64 << 10
	maxAnswer    = 256 << 20 // a whole answer, decoded
	// trustedAnswer is how much memory a declared length is given before the bytes have come.
	trustedAnswer = 16 << 20
	// A stream whose every choice is finished is whole. What may still come is waited for this
	// long: the usage, if it was not seen yet, or only the end marker.
	graceForUsage = 2 * time.Second
	graceForEnd   = 250 * time.Millisecond
)

// begin forgets what an attempt before it has seen.
func (a *attempt) begin() {
	a.mode, a.whole = readError, a.whole[:0]
	a.spoke, a.ended, a.skipped, a.graceAt = false, false, 0, time.Time{}
}

// empty forgets the request and keeps the memory that the next one can use.
func (a *attempt) empty(keep int) {
	a.target, a.call, a.events, a.gate = nil, nil, nil, nil
	a.as.Release()
	a.request = upstream.Request{}
	a.up, a.whole = emptied(a.up, keep), emptied(a.whole, keep)
	clear(a.head[:cap(a.head)])
	a.head, a.id = a.head[:0], a.id[:0]
	a.number, a.open, a.cause, a.candidate, a.byLimit = 0, false, failure.Initial, 0, false
	a.begin()
}

// launch shapes the request and hands it to the transport. Nothing is sent before the first
// call of awaitHead.
func (x *Exchange) launch() {
	a := &x.at
	t := a.target
	a.id = append(append(append(a.id[:0], x.id...), '-'), itoa(a.number)...)
	a.as.Release()
	a.as = adapter.Call{
		Request: &x.facts, Body: x.in, Model: t.route.Upstream,
		AskUsage: x.facts.Stream && t.link.askUsage,
		ID:       bytesAsString(a.id), Now: x.rec.Attempt(a.number).OpenedAt,
		Deadline: x.m.Deadline(), Gone: x.sig.done(),
	}
	shaped, err := t.link.adapter.Request(a.up[:0], &a.as)
	if err != nil {
		x.failShaping(err)
		return
	}
	a.up = shaped.Body
	a.head = x.upstreamHeaders(a.head[:0], t.link, &shaped)
	if t.link.signer != nil {
		a.head = sign(a.head, t.link, &shaped, x.g.now())
	}
	a.request = upstream.Request{
		Method: shaped.Method, Path: shaped.Path, Header: a.head, Body: shaped.Body, MaxBody: maxAnswer,
	}
	a.call = upstream.AcquireCall()
	a.call.Start(t.link.pool, &a.request, x.clocks(t))
	a.call.WakeAt(x.heartbeat)
	x.sig.running(a.call)
	x.stage = heading
}

// awaitHead waits for the head of the answer. It returns true when a heartbeat is due first.
func (x *Exchange) awaitHead() bool {
	a := &x.at
	switch err := a.call.Head(); {
	case err == nil:
		x.headIn()
	case errors.Is(err, upstream.ErrWake):
		if x.beatDue(x.g.now()) {
			a.call.WakeAt(x.heartbeat)
			return true
		}
		a.call.WakeAt(x.heartbeat)
	default:
		x.failTransport(err)
	}
	return false
}

// headIn looks at the head of the answer and chooses how to read its body.
func (x *Exchange) headIn() {
	a := &x.at
	status := a.call.Status()
	rec := x.rec.Attempt(a.number)
	rec.Status = status
	for _, name := range [...]string{"x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"} {
		if v := a.call.Header(name); len(v) > 0 {
			rec.UpstreamRequestID = x.rec.Keep(v[:min(len(v), 128)])
			break
		}
	}
	x.stage = reading
	switch {
	case status < 200 || status > 299:
		a.mode = readError
	case x.facts.Stream && a.target.link.adapter.Streams(&a.as, a.call.ContentType()):
		a.mode = readStream
		a.events = a.target.link.adapter.Events(&a.as)
		a.stream.Reset(x.facts.Endpoint, openai.StreamOptions{
			IncludeUsage: x.facts.IncludeUsage, Model: a.target.route.Model,
			Disclosure: x.disclosure(a.cause, a.target),
			KeepText:   x.buffered, Structured: x.facts.Structure != openai.Unstructured,
		})
	case isJSON(a.call.ContentType()):
		a.mode = readWhole
	default:
		x.fail(fault{class: failure.MalformedAnswer})
	}
}

// isJSON also accepts an answer that names no type: its bytes are checked anyway.
func isJSON(contentType []byte) bool {
	return len(contentType) == 0 || adapter.HasFold(contentType, "json")
}

// read takes the next bytes of the answer. stop says that drive has to return ev.
func (x *Exchange) read() (ev event, stop bool) {
	a := &x.at
	b, err := a.call.Next()
	switch {
	case err == nil:
		return x.take(b)
	case errors.Is(err, upstream.ErrWake):
		return x.woken()
	case err == io.EOF: // itself: an *upstream.Error may wrap it, and that is a cut
		return x.endOfBody()
	default:
		return x.broken(err)
	}
}

// woken is a wake of the transport: the grace of a finished stream is over, or a heartbeat
// is due.
func (x *Exchange) woken() (event, bool) {
	a := &x.at
	now := x.g.now()
	if !a.graceAt.IsZero() && !now.Before(a.graceAt) {
		return x.endOfStream()
	}
	due := !x.committed.output() && x.beatDue(now)
	x.setWake()
	return beat, due
}

func (x *Exchange) setWake() {
	wake := x.at.graceAt
	if !x.committed.output() && !x.heartbeat.IsZero() && (wake.IsZero() || x.heartbeat.Before(wake)) {
		wake = x.heartbeat
	}
	x.at.call.WakeAt(wake)
}

// take handles further bytes of the body.
func (x *Exchange) take(b []byte) (event, bool) {
	a := &x.at
	switch a.mode {
	case readStream:
		return x.takeEvents(b)
	case readWhole:
		if len(a.whole) == 0 { // room for all of it at once, as far as a mere number is believed
			a.whole = slices.Grow(a.whole, max(len(b), min(a.call.Length(), trustedAnswer)))
		}
		a.whole = append(a.whole, b...)
	case readError:
		a.whole = append(a.whole, b[:min(len(b), maxErrorBody-len(a.whole))]...)
		if len(a.whole) == maxErrorBody {
			return x.endOfBody()
		}
	}
	return 0, false
}

// endOfBody is the clean end of the answer's body.
func (x *Exchange) endOfBody() (event, bool) {
	a := &x.at
	switch a.mode {
	case readStream:
		return x.endOfStream()
	case readWhole:
		return x.endOfWhole()
	default:
		f := a.target.link.adapter.Classify(&a.as, a.call, a.whole)
		x.fail(fault{class: f.Class, err: f.Error, retryAfter: f.RetryAfter, hasRetryAfter: f.HasRetryAfter})
		return 0, false
	}
}

// broken is the end of a call that the transport could not carry through.
func (x *Exchange) broken(err error) (event, bool) {
	a := &x.at
	if a.mode == readError {
		var e *upstream.Error
		if errors.As(err, &e) && e.Transport != failure.Aborted {
			return x.endOfBody() // the status has said what matters
		}
	}
	if a.mode == readStream && !a.graceAt.IsZero() && !x.sig.over() {
		return x.endOfStream() // every choice was finished: only the end marker is missing
	}
	x.failTransport(err)
	return 0, false
}

// endOfWhole judges an answer that was read whole.
func (x *Exchange) endOfWhole() (event, bool) {
	a := &x.at
	translated, err := a.target.link.adapter.Response(nil, &a.as, a.call, a.whole)
	if err != nil {
		x.failAdapter(err)
		return 0, false
	}
	switch a.answer.Scan(x.facts.Endpoint, translated) {
	case openai.Errored:
		x.failInside(a.answer.Failure())
	case openai.Empty:
		x.fail(fault{class: failure.EmptyCompletion})
	case openai.Cut, openai.Broken:
		x.fail(fault{class: failure.MalformedAnswer})
	default:
		if x.facts.Stream {
			x.fail(fault{class: failure.MalformedAnswer}) // whole JSON where events were asked for
			return 0, false
		}
		if x.buffered && x.violates(&a.answer) {
			x.fail(fault{class: failure.SchemaInvalid})
			return 0, false
		}
		x.body = a.answer.AppendBody(x.body[:0], translated, openai.AnswerOptions{
			Model: a.target.route.Model, Disclosure: x.disclosure(a.cause, a.target), Base64: x.facts.Base64,
		})
		return finished, x.guardAnswer()
	}
	return 0, false
}

func (x *Exchange) violates(f openai.Finished) bool {
	return x.g.validator.Check(&x.facts, x.in, f).Kind != openai.NoViolation
}

// takeEvents decodes events and gathers what goes downstream.
func (x *Exchange) takeEvents(b []byte) (event, bool) {
	a := &x.at
	a.events.Feed(b)
	for {
		ok, err := a.events.Next(&a.event)
		if err != nil {
			x.failAdapter(err)
			return 0, false
		}
		if !ok {
			break
		}
		if ev, stop, next := x.takeEvent(); stop || !next {
			return ev, stop
		}
	}
	return x.pass()
}

// takeEvent handles one event. next says that the loop over events may go on.
func (x *Exchange) takeEvent() (ev event, stop, next bool) {
	a := &x.at
	var step openai.Step
	x.out, step = a.stream.Event(x.out, &a.event)
	switch step {
	case openai.Output:
		if !a.spoke {
			x.firstOutput()
		}
	case openai.Malformed:
		if ev, stop = x.malformed(); stop || x.stage != reading {
			return ev, stop, false
		}
	case openai.Failed:
		x.failInside(a.stream.Failure())
		return 0, false, false
	case openai.Done:
		a.ended = true
		ev, stop = x.endOfStream()
		return ev, stop, false
	}
	return 0, false, true
}

// pass hands what was gathered downstream, if it may go already.
func (x *Exchange) pass() (event, bool) {
	a := &x.at
	if a.graceAt.IsZero() && a.spoke && a.stream.Complete() {
		grace := graceForEnd
		if _, ok := a.stream.Usage(); !ok {
			grace = graceForUsage
		}
		a.graceAt = x.g.now().Add(grace)
		x.setWake()
	} else if _, ok := a.stream.Usage(); ok && !a.graceAt.IsZero() {
		if soon := x.g.now().Add(graceForEnd); soon.Before(a.graceAt) {
			a.graceAt = soon
			x.setWake()
		}
	}
	if !a.spoke || x.buffered || len(x.out) == 0 {
		return 0, false
	}
	if x.committed.output() && len(x.out) < gatherMost && a.call.More() {
		return 0, false // what has arrived already goes downstream in one write
	}
	if !x.guardEvents(false) || len(x.out) == 0 {
		return 0, false
	}
	x.commit()
	a.permit.Answering(x.g.now())
	return output, true
}

// gatherMost bounds, in bytes, what of a committed stream is gathered before it is passed on.
const gatherMost = 16 << 10

// firstOutput notes the first meaningful output of the attempt.
func (x *Exchange) firstOutput() {
	a := &x.at
	a.spoke = true
	a.call.OutputSeen()
	now := x.g.now()
	rec := x.rec.Attempt(a.number)
	rec.FirstOutput.Value, rec.FirstOutput.Known = now.Sub(rec.OpenedAt), true
}

// malformed is an event that is not what the wire format allows.
// It is skipped where nothing can be lost by that; otherwise the attempt has failed.
func (x *Exchange) malformed() (event, bool) {
	a := &x.at
	if x.committed.output() && !a.stream.Open() {
		a.skipped++
		return 0, false
	}
	x.fail(fault{class: failure.MalformedAnswer})
	return 0, false
}

// endOfStream judges a stream that has ended, by its marker, its body or its silence.
func (x *Exchange) endOfStream() (event, bool) {
	a := &x.at
	for !a.ended {
		ok, err := a.events.Flush(&a.event)
		if err != nil {
			x.failAdapter(err)
			return 0, false
		}
		if !ok {
			break
		}
		if ev, stop, next := x.takeEvent(); stop || !next {
			return ev, stop
		}
	}
	var ending openai.Ending
	x.out, ending = a.stream.End(x.out)
	switch ending {
	case openai.Whole:
		if x.buffered && x.violates(&a.stream) {
			x.fail(fault{class: failure.SchemaInvalid})
			return 0, false
		}
		return finished, x.guardEvents(true)
	case openai.Empty:
		if x.committed.output() { // reasoning alone: it is downstream, and End has closed it
			return finished, x.guardEvents(true)
		}
		x.fail(fault{class: failure.EmptyCompletion})
	case openai.Errored:
		x.failInside(a.stream.Failure())
	case openai.Broken:
		x.fail(fault{class: failure.MalformedAnswer})
	default:
		x.failCut()
	}
	return 0, false
}

// sign appends the signature to the head of a request that is ready to go.
func sign(head []upstream.Field, l *Link, s *adapter.Shaped, now time.Time) []upstream.Field {
	r := sigv4.Request{Method: s.Method, Body: sha256.Sum256(s.Body), Time: now}
	if r.Method == "" {
		r.Method = "POST"
	}
	r.Host, r.Path = l.pool.Addressed(s.Path)
	var signed [8]upstream.Field
	covered := signed[:0]
	for _, f := range head {
		if name := strings.ToLower(f.Name); name == "content-type" || strings.HasPrefix(name, "x-amz-") {
			covered = append(covered, f)
		}
	}
	return sigv4.Sign(head, l.signer, &r, covered)
}

// upstreamHeaders builds the head for the provider anew, from an allow-list.
func (x *Exchange) upstreamHeaders(dst []upstream.Field, l *Link, s *adapter.Shaped) []upstream.Field {
	accept := typeJSON
	if x.facts.Stream {
		if accept = s.Accept; accept == "" {
			accept = typeSSE
		}
	}
	dst = append(dst, upstream.Field{Name: "Content-Type", Value: s.ContentType}, upstream.Field{Name: "Accept", Value: accept})
	dst = append(dst, l.headers...)
	for _, f := range s.Header {
		if !l.sets(f.Name) { // what the operator configured goes before what a plugin wants
			dst = append(dst, upstream.Field(f))
		}
	}
	add := func(name string, v []byte) {
		if len(v) > 0 {
			dst = append(dst, upstream.Field{Name: name, Value: bytesAsString(v)})
		}
	}
	add("User-Agent", x.wishes.userAgent)
	add("traceparent", x.wishes.traceParent)
	add("tracestate", x.wishes.traceState)
	for _, name := range l.pass {
		add(name, x.head.Peek(name))
	}
	add("x-client-request-id", x.at.id)
	return dst
}
