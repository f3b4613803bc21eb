package flow

import (
	"io"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// open makes the reply of a request that has something to write: a whole answer, or a stream
// whose head goes out now. A stream's bytes follow from pump.
func (x *Exchange) open(ev event) *Reply {
	r := x.begin(200, typeJSON)
	if x.facts.Stream {
		r.ContentType, r.Stream = typeSSE, true
	}
	if ev == beat { // nobody has answered yet: only the status is out
		x.committed = statusCommitted
		x.due = true
		return r
	}
	x.answerHeaders(r)
	if ev == finished {
		x.succeed()
		x.done = true
	}
	if !r.Stream {
		r.Body = x.body
	}
	return r
}

// pump writes a stream: heartbeats and further attempts as long as nothing meaningful is out,
// then the answer's events as they come, and its end.
func (x *Exchange) pump(w io.Writer) (n int64, err error) {
	write := func(b []byte) bool {
		var k int
		k, err = w.Write(b)
		n += int64(k)
		x.passed += int64(k)
		return err == nil
	}
	pass := !x.due // what open found is for the caller; before output nothing else is
	for {
		if x.due {
			x.due = false
			if !write(heartbeatBytes) {
				return n, x.lost(err)
			}
		}
		if pass && len(x.out) > 0 {
			if x.sig.gone() {
				return n, x.lost(errCallerLeft)
			}
			if !write(x.out) {
				return n, x.lost(err)
			}
			x.out = x.out[:0]
		}
		if x.done {
			return n, x.endError()
		}
		switch x.drive() {
		case beat:
			x.due, pass = true, false
		case output:
			pass = true
		case finished:
			if x.sig.gone() { // it was read on for its usage
				return n, x.finishedAlone()
			}
			x.succeed()
			x.done, pass = true, true
		case failed:
			x.endBroken()
			x.done, pass = true, true
		}
	}
}

// finishedAlone settles an answer that became whole after its caller had left.
func (x *Exchange) finishedAlone() error {
	x.closeAttempt(x.g.now(), nil, nil)
	x.settle(failure.CallerLeft, x.sentStatus())
	x.done = true
	return errCallerLeft
}

var heartbeatBytes = []byte(openai.Heartbeat)

// endError is what the front gets at the end: an error where the body must not end cleanly.
func (x *Exchange) endError() error {
	if x.terminal == failure.CallerLeft {
		return errCallerLeft
	}
	return nil
}

// endBroken ends a stream whose status is out with the error event that SDKs raise.
func (x *Exchange) endBroken() {
	if x.terminal == failure.CallerLeft {
		return
	}
	x.identify(x.failure)
	x.out = x.at.stream.AppendPartialEnd(x.out, x.failure) // after what had arrived of it
}

// lost is the end of a stream whose caller can no longer be written to. With
// after_disconnect: drain the upstream is read on, for a bounded time, so that its usage is
// exact.
func (x *Exchange) lost(cause error) error {
	x.sig.peerGone(x.g.now())
	if x.done {
		return cause
	}
	if x.committed.output() && x.gen.stream.drain && x.at.open {
		x.drain()
	}
	if !x.settled && x.at.open {
		x.fail(fault{transport: failure.Aborted})
	}
	x.settle(failure.CallerLeft, x.sentStatus())
	x.done = true
	return cause
}

const drainFor = 30 * time.Second

// drain reads the rest of the answer for its usage alone.
func (x *Exchange) drain() {
	x.at.call.SetDeadline(x.g.now().Add(drainFor), failure.ClockTotal)
	for x.stage == reading {
		ev, stop := x.read()
		x.out = x.out[:0]
		if stop && ev == finished {
			_ = x.finishedAlone() // lost has the cause already
			return
		}
	}
}

// sentStatus is the status that went out, or the one recorded for a caller that left before.
func (x *Exchange) sentStatus() int {
	if x.committed.status() {
		return 200
	}
	return statusClientClosed
}

// answer makes the reply of a request that failed before anything was sent.
func (x *Exchange) answer() *Reply {
	x.done = true
	return x.refuse(x.failure)
}

// deny answers a request that the gateway itself refuses, before any attempt.
func (x *Exchange) deny(e *openai.Error) *Reply {
	x.done = true
	x.settle(failure.PolicyStop, e.Status)
	return x.refuse(e)
}
