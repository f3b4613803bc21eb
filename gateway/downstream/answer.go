package downstream

import (
	"errors"
	"io"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/downstream/watch"
	"github.com/interlock-gateway/interlock/gateway/flow"
)

// answer is one running exchange between its body's first byte and its answer's last: the
// target of the watch, and the body stream that the HTTP library pulls. Answers are pooled.
type answer struct {
	front   *Front
	socket  *socket
	watched watch.Conn // nil once disarmed
	head    head
	upload  upload
	run     exchange
	reply   *flow.Reply
	out     io.Writer // while WriteTo runs
}

var answers = sync.Pool{New: func() any { return new(answer) }}

// begin counts a request in. Finish counts it out.
func (f *Front) begin(ctx *fasthttp.RequestCtx) *answer {
	f.running.Add(1)
	a := answers.Get().(*answer)
	a.front, a.socket = f, socketOf(ctx.Conn())
	return a
}

// arm starts the watch.
func (a *answer) arm(ctx *fasthttp.RequestCtx) {
	if w, ok := watch.From(ctx.Conn()); ok {
		a.watched = w
		w.Arm(a)
	}
}

// PeerGone implements watch.Target. It runs in the watch's goroutine, where a panic would
// kill the process.
func (a *answer) PeerGone(k watch.Kind) {
	f := a.front
	if k == watch.HalfClose && f.options.KeepHalfClosed {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			f.panicked(v)
		}
	}()
	if a.socket != nil {
		a.socket.cut()
	}
	a.run.PeerGone()
}

// finish ends the exchange, whatever became of it, and gives up everything. Exactly once.
func (a *answer) finish() {
	f := a.front
	defer f.running.Add(-1)
	if a.watched != nil {
		a.watched.Disarm()
	}
	a.upload.give(&f.bodies)
	defer func() { // also when Close panics: the buffer is not used again then
		*a = answer{upload: a.upload}
		answers.Put(a)
	}()
	if a.run != nil {
		run := a.run
		a.run = nil
		if !closed(f, run) {
			a.upload = upload{}
		}
	}
	a.upload.release()
}

// closed closes an exchange; false if that panicked.
func closed(f *Front, run exchange) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked(v)
		}
	}()
	run.Close()
	return true
}

// SupportsBodyWriteTo has the HTTP library call WriteTo, in the connection's own goroutine.
func (a *answer) SupportsBodyWriteTo() bool { return true }

// WriteTo writes the body. An error makes the library drop the connection without a clean
// end, which a caller can tell from a whole answer.
func (a *answer) WriteTo(w io.Writer) (n int64, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.front.panicked(v)
			err = errPanicked
		}
	}()
	if !a.reply.Stream {
		written, err := w.Write(a.reply.Body)
		return int64(written), err
	}
	a.out = w
	return a.run.WriteTo(a)
}

var errPanicked = errors.New("downstream: the exchange panicked")

// Write passes a piece of a stream on. What is no comment is output: no further attempt can
// follow, and the request's body no longer counts as in flight.
func (a *answer) Write(p []byte) (int, error) {
	if a.upload.taken > 0 && len(p) > 0 && p[0] != ':' {
		a.upload.give(&a.front.bodies)
	}
	return a.out.Write(p)
}

// Read makes the answer a body stream. The library never calls it.
func (a *answer) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close implements io.Closer: the library calls it after the last byte, or the failure.
func (a *answer) Close() error {
	a.finish()
	return nil
}

var (
	_ watch.Target          = (*answer)(nil)
	_ fasthttp.BodyWriterTo = (*answer)(nil)
	_ io.ReadCloser         = (*answer)(nil)
)
