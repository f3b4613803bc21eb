package adapter

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// guestEvents decodes one stream: all whole frames of what was fed go to the guest in one
// call, and what it returns is handed out event by event.
type guestEvents struct {
	g      *Guest
	c      *Call
	framer framer

	sse    sseFramer
	lines  linesFramer
	aws    awsFramer
	array  arrayFramer
	frame  frame
	ready  openai.Splitter // over out: what the guest returned, framed for the caller
	out    []byte
	done   bool // the answer is whole
	closed bool // the guest has been told that the body has ended
	failed error
	after  error // what comes behind the events of out
}

var decoders = sync.Pool{New: func() any { return new(guestEvents) }}

// Events implements Adapter.
func (g *Guest) Events(c *Call) Events {
	e := decoders.Get().(*guestEvents)
	e.g, e.c = g, c
	s := c.begin()
	switch s.framing {
	case interlock.Lines:
		e.framer = &e.lines
	case interlock.AWSEventStream:
		e.framer = &e.aws
	case interlock.JSONArray:
		e.framer = &e.array
	default:
		e.framer = &e.sse
	}
	e.framer.reset(g.maxEvent)
	e.ready.Reset()
	e.ready.Max = 2*g.maxEvent + 1<<20
	return e
}

// Release implements Events.
func (e *guestEvents) Release() {
	e.g, e.c, e.framer, e.failed, e.after = nil, nil, nil, nil, nil
	e.done, e.closed, e.out, e.frame = false, false, modest(e.out), frame{}
	decoders.Put(e)
}

// Feed implements Events.
func (e *guestEvents) Feed(b []byte) {
	if e.failed == nil && !e.done {
		e.framer.feed(b)
	}
}

// Next implements Events.
func (e *guestEvents) Next(ev *openai.Event) (bool, error) {
	for {
		if ok, err := e.ready.Next(ev); ok || err != nil {
			return ok, err
		}
		if e.after != nil {
			e.failed, e.after = e.after, nil
		}
		if e.failed != nil || e.done {
			return false, e.failed
		}
		ok, err := e.translate(false)
		if err != nil {
			e.failed = err
			return false, err
		}
		if !ok {
			return false, nil
		}
	}
}

// Flush implements Events.
func (e *guestEvents) Flush(ev *openai.Event) (bool, error) {
	for {
		if ok, err := e.ready.Next(ev); ok || err != nil {
			return ok, err
		}
		if e.after != nil {
			e.failed, e.after = e.after, nil
		}
		if e.failed != nil || e.done || e.closed {
			return false, e.failed
		}
		e.closed = true
		if _, err := e.translate(true); err != nil {
			e.failed = err
			return false, err
		}
	}
}

// translate hands the frames that are whole to the guest. It returns false where there was
// none.
func (e *guestEvents) translate(ended bool) (bool, error) {
	s := e.c.session
	w := s.context(e.c)
	w.Bytes(s.state)
	flags := uint32(0)
	if ended {
		flags = 1
	}
	w.U32(flags)
	at, n := len(*w), 0
	w.U32(0)
	for len(*w)-at < e.g.maxEvent { // what is left goes in another call
		ok, err := e.framer.next(&e.frame)
		if err == nil && !ok && ended {
			ok, err = e.framer.flush(&e.frame)
		}
		if err != nil {
			if n == 0 {
				return false, err
			}
			e.after = err // what came before it was whole
			break
		}
		if !ok {
			break
		}
		w.Bytes(e.frame.name)
		w.Bytes(e.frame.data)
		n++
	}
	if n == 0 && !ended {
		return false, nil
	}
	setU32((*w)[at:], n)
	r, err := e.c.call(e.g.run, wasm.OpEvents)
	if err != nil {
		return false, malformedOr(err)
	}
	return true, e.take(&r, s)
}

// take checks a result and frames its events for the caller.
func (e *guestEvents) take(r *interlock.Reader, s *session) error {
	flags, state := r.U32(), r.Bytes()
	e.out = e.out[:0]
	for n := r.Count(8); n > 0; n-- {
		name, data := r.Bytes(), r.Bytes()
		if bytes.ContainsAny(name, "\r\n\x00") || bytes.ContainsAny(data, "\r\n") {
			return e.g.broken(refusedEvent, "events: an event has a line feed")
		}
		e.out = appendEvent(e.out, name, data)
	}
	if !r.OK() || flags > 3 || flags == 3 {
		return e.g.broken(refusedResult, "events: the result is not as the ABI has it")
	}
	if len(state) > e.g.state {
		return e.g.broken(refusedState, fmt.Sprintf("events: a state of %d bytes, at most %d are allowed", len(state), e.g.state))
	}
	s.state = append(s.state[:0], state...)
	switch {
	case flags&2 != 0:
		f, ok := readFailure(r)
		if !ok {
			return e.g.broken(refusedFailure, "events: the failure is not as the ABI has it")
		}
		e.after = &Failed{f}
	case flags&1 != 0:
		e.done = true
		if e.c.Request.Endpoint != openai.Responses {
			e.out = append(e.out, "data: [DONE]\n\n"...)
		}
	}
	e.ready.Feed(e.out)
	return nil
}

// appendEvent appends a server-sent event. Neither part has a line end.
func appendEvent(dst, name, data []byte) []byte {
	if len(name) > 0 {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	return append(append(append(dst, "data: "...), data...), '\n', '\n')
}

var _ Events = (*guestEvents)(nil)
