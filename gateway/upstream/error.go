package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// ErrWake says that the time given to [Call.WakeAt] has come. Nothing was lost: calling
// the same method again goes on where it stopped.
var ErrWake = errors.New("upstream: woken")

// ErrRequest is wrapped by the error of a request that was never sent because it cannot be
// written as HTTP: a control byte in a header, a method that is no token, a header that the
// transport sets itself. It is a fault of the gateway or its config, not of the upstream.
var ErrRequest = errors.New("upstream: request cannot be sent")

// ErrClosed is the cause when a call is started on a closed pool.
var ErrClosed = errors.New("upstream: pool is closed")

// ErrTooLarge is the cause when the answer's body is larger than [Request].MaxBody.
var ErrTooLarge = errors.New("the body is larger than allowed")

// Error is how an exchange failed, as facts. It never quotes header values, body bytes or
// credentials.
type Error struct {
	// Transport is the fact that ended the exchange. It is never TransportOK.
	Transport failure.Transport
	// Wire is what surely happened before: NotSent, Sent or HeadersSeen.
	Wire failure.Wire
	// Err is the cause: for Aborted the one given to [Call.Abort]. It may be nil.
	Err error
}

func (e *Error) Error() string {
	s := "upstream: " + e.Transport.String() + " (" + e.Wire.String() + ")"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// isTimeout reports whether a socket deadline ended the wait.
func isTimeout(err error) bool {
	if err == nil {
		return false
	}
	if ne, ok := err.(net.Error); ok { // the common case, without reflection
		return ne.Timeout()
	}
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// cutFact names how a connection ended under a read or a write.
func cutFact(err error) failure.Transport {
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failure.EOF
	case errors.As(err, &op) && op.Op == "remote error":
		return failure.TLS // an alert: in TLS 1.3 the peer may refuse a handshake that we have finished
	default:
		return failure.Reset
	}
}

// dialFact names why no connection came about; ctx is the one that its clock ends.
func dialFact(ctx context.Context, err error) failure.Transport {
	var dns *net.DNSError
	var ne net.Error
	switch {
	case ctx.Err() != nil:
		return failure.ClockConnect
	case errors.As(err, &dns):
		return failure.DNS
	case errors.Is(err, syscall.ETIMEDOUT):
		return failure.Connect // the kernel gave up, not our clock
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return failure.ClockConnect // the dialer's own deadline, a moment before the context's
	default:
		return failure.Connect
	}
}
