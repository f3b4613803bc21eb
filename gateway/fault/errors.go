package fault

import (
	"errors"
	"syscall"
)

// ErrClosed is returned by the waits of a provider that was closed.
var ErrClosed = errors.New("fault: provider closed")

var (
	errPeerGone    = errors.New("fault: the peer closed the connection")
	errHungUp      = errors.New("fault: the peer closed the connection behind unread bytes")
	errReadExpired = errors.New("fault: the connection was idle too long")
	errCutFin      = errors.New("fault: cut fin")
	errCutReset    = errors.New("fault: cut reset")
)

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
