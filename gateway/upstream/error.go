package upstream

import (
	"errors"

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
