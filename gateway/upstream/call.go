package upstream

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Call is one exchange. It belongs to one goroutine at a time; only [Call.Abort] may come
// from others. Its life is [AcquireCall], [Call.Start], [Call.Head] until it returns
// anything but [ErrWake], [Call.Next] likewise until [io.EOF] or an [*Error],
// [Call.Release]. After Release only Abort and Release may still be called; both then do
// nothing.
type Call struct{}

// AcquireCall returns a call that was never used.
func AcquireCall() *Call { panic("upstream: not written yet") }

// Release ends the call, whatever state it is in, and keeps the connection if the answer
// was read to its clean end. It does not block. When it returns, nothing touches the
// request's memory any more and no Abort can reach a socket.
func (c *Call) Release() { panic("upstream: not written yet") }

// Start records what is to be sent, where, and under which clocks. Nothing is sent before
// [Call.Head].
func (c *Call) Start(p *Pool, req *Request, k Clocks) { panic("upstream: not written yet") }

// Head connects, sends and waits until the final response head is there: it returns nil
// then, [ErrWake], or an [*Error]. Redirects are answers like any other.
func (c *Call) Head() error { panic("upstream: not written yet") }

// Next returns further bytes of the decoded body, at least one, valid until the next call
// of Next or Release. It returns [io.EOF] at the clean end (for a body without a length
// also the end of the connection: the layer above judges whether the answer is whole),
// [ErrWake], or an [*Error].
func (c *Call) Next() ([]byte, error) { panic("upstream: not written yet") }

// More reports whether Next surely returns without waiting. It may say false although
// bytes are there (TLS, compressed bodies).
func (c *Call) More() bool { panic("upstream: not written yet") }

// WakeAt makes every wait of Head and Next end at t at the latest with [ErrWake]; the zero
// time means never. Sending a body of up to 64 KiB is not interrupted.
func (c *Call) WakeAt(t time.Time) { panic("upstream: not written yet") }

// OutputSeen ends the first-output clock; the idle clock runs from here on.
func (c *Call) OutputSeen() { panic("upstream: not written yet") }

// SetDeadline moves the absolute deadline (zero: none); fact is ClockTotal or ClockReserve.
func (c *Call) SetDeadline(t time.Time, fact failure.Transport) { panic("upstream: not written yet") }

// Abort ends the call from any goroutine, in any phase, at any time: what waits returns an
// [*Error] with Aborted and the cause of the first Abort. It never blocks.
func (c *Call) Abort(cause error) { panic("upstream: not written yet") }

// Status is the response's status code; 0 before its head is there.
func (c *Call) Status() int { panic("upstream: not written yet") }

// Header returns the first value of the response field with that name, in any case; nil if
// there is none. Valid until Release.
func (c *Call) Header(name string) []byte { panic("upstream: not written yet") }

// VisitHeaders calls f with every response field. The slices are valid until Release.
func (c *Call) VisitHeaders(f func(name, value []byte)) { panic("upstream: not written yet") }

// ContentType is the response's Content-Type; nil if it has none. Valid until Release.
func (c *Call) ContentType() []byte { panic("upstream: not written yet") }

// Wire says what surely happened on the wire so far: NotSent, Sent or HeadersSeen.
func (c *Call) Wire() failure.Wire { panic("upstream: not written yet") }

// Times returns the moments of the exchange so far.
func (c *Call) Times() Times { panic("upstream: not written yet") }

// Reused reports whether the connection in use came from the pool.
func (c *Call) Reused() bool { panic("upstream: not written yet") }
