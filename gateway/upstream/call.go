package upstream

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Call is one exchange. It belongs to one goroutine at a time; only [Call.Abort] may come
// from others. Its life is [AcquireCall], [Call.Start], [Call.Head] until it returns
// anything but [ErrWake], [Call.Next] likewise until [io.EOF] or an [*Error],
// [Call.Release]. After Release only Abort and Release may still be called; both then do
// nothing.
//
// A Call is small and never used twice, so a late Abort cannot hit somebody else's
// exchange; what is worth keeping between calls is in exchange.
type Call struct {
	x *exchange // the owner's; nil after Release

	// gate is what other goroutines may touch.
	gate gate
}

// gate lets an abort, or the end of an upload, reach the owner in its waits. Whoever sets a
// deadline on the socket holds mu, so none can overwrite the one that ends the wait.
type gate struct {
	mu      sync.Mutex
	aborted atomic.Bool // set with mu held
	cause   error
	raw     net.Conn // the socket in use, or nil
	dial    *dialing // the connection being made, or nil
	upload  *upload  // the body being sent in a goroutine of its own, or nil
}

var errAborted = errors.New("aborted")

// AcquireCall returns a call that was never used.
func AcquireCall() *Call {
	c := &Call{x: exchanges.Get().(*exchange)}
	c.x.gate = &c.gate
	return c
}

// Release ends the call, whatever state it is in, and keeps the connection if the answer
// was read to its clean end. It does not block. When it returns, nothing touches the
// request's memory any more and no Abort can reach a socket.
func (c *Call) Release() {
	x := c.x
	if x == nil {
		return
	}
	c.x = nil
	huge := x.headBytes > 16<<10
	x.release()
	if !huge { // one upstream's huge head is not kept for ever
		exchanges.Put(x)
	}
}

// ReleaseEnded is Release for an answer of which nothing more is wanted, and whose end may just
// not have come yet: servers send the last chunk of a stream apart from its last event. What is
// left is read for a moment, by a goroutine of the pool's, so that the connection can be kept.
func (c *Call) ReleaseEnded() {
	if c.x != nil {
		c.x.leaveRest()
	}
	c.Release()
}

// Start records what is to be sent, where, and under which clocks. Nothing is sent before
// [Call.Head].
func (c *Call) Start(p *Pool, req *Request, k Clocks) {
	if c.x.pool != nil {
		panic("upstream: Start called twice on one Call")
	}
	c.x.pool, c.x.req, c.x.clocks = p, req, k
}

// Head connects, sends and waits until the final response head is there: it returns nil
// then, [ErrWake], or an [*Error]. Redirects are answers like any other.
func (c *Call) Head() error { return c.x.awaitHead() }

// Next returns further bytes of the decoded body, at least one, valid until the next call
// of Next or Release. It returns [io.EOF] at the clean end (for a body without a length
// also the end of the connection: the layer above judges whether the answer is whole),
// [ErrWake], or an [*Error]. With io.EOF the connection is free for others already.
func (c *Call) Next() ([]byte, error) { return c.x.next() }

// More reports whether Next surely returns without waiting. It may say false although
// bytes are there (TLS, compressed bodies). The bytes from Next stay valid.
func (c *Call) More() bool { return c.x.more() }

// WakeAt makes every wait of Head and Next end at t at the latest with [ErrWake]; the zero
// time means never. Sending a request of up to 64 KiB is not interrupted.
func (c *Call) WakeAt(t time.Time) { c.x.wakeAt = t }

// OutputSeen ends the first-output clock; the idle clock runs from here on.
func (c *Call) OutputSeen() { c.x.outputSeen = true }

// SetDeadline moves the absolute deadline (zero: none); fact is ClockTotal or ClockReserve.
func (c *Call) SetDeadline(t time.Time, fact failure.Transport) {
	c.x.clocks.Deadline, c.x.clocks.DeadlineFact = t, fact
}

// Abort ends the call from any goroutine, in any phase, at any time: what waits returns an
// [*Error] with Aborted and the cause of the first Abort, and so does every later call. It
// never blocks. The peer is told at once, even if the owner is busy elsewhere.
func (c *Call) Abort(cause error) {
	if cause == nil {
		cause = errAborted
	}
	g := &c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.aborted.Load() {
		return
	}
	g.cause = cause
	g.aborted.Store(true)
	if g.dial != nil {
		g.dial.stop()
		close(g.dial.gone)
	}
	if g.raw != nil {
		_ = g.raw.SetDeadline(past)
		// Not Close: on a TLS connection it can block, on a socket it waits for its users.
		if half, ok := g.raw.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
}

// Status is the response's status code; 0 before its head is there.
func (c *Call) Status() int { return c.x.status }

// Header returns the first value of the response field with that name, in any case; nil if
// there is none. Valid until Release.
func (c *Call) Header(name string) []byte {
	if c.x.status == 0 {
		return nil
	}
	return c.x.head.Peek(name)
}

// VisitHeaders calls f with every response field. The slices are valid until Release.
func (c *Call) VisitHeaders(f func(name, value []byte)) {
	if c.x.status == 0 {
		return
	}
	for name, value := range c.x.head.All() {
		f(name, value)
	}
}

// ContentType is the response's Content-Type; nil if it has none. Valid until Release.
func (c *Call) ContentType() []byte {
	if c.x.status == 0 {
		return nil
	}
	return c.x.head.ContentType()
}

// Length is the length of the body as the head declares it, before decoding; -1 where it does
// not, or no head is there.
func (c *Call) Length() int {
	if c.x.status == 0 {
		return -1
	}
	return max(c.x.head.ContentLength(), -1)
}

// Wire says what surely happened on the wire so far: NotSent, Sent or HeadersSeen.
func (c *Call) Wire() failure.Wire { return c.x.wire }

// Times returns the moments of the exchange so far.
func (c *Call) Times() Times { return c.x.times }

// Reused reports whether the connection in use came from the pool.
func (c *Call) Reused() bool { return c.x.reused }
