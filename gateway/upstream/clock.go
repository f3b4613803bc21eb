package upstream

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Clocks bound the phases of an exchange, each by itself. A zero duration switches that
// clock off.
type Clocks struct {
	// Connect covers the name, TCP and a proxy's handshake, and the TLS handshake where TLS
	// is zero. Fires as ClockConnect.
	Connect time.Duration
	// TLS covers the TLS handshake alone. Fires as ClockConnect.
	TLS time.Duration
	// Write is how long the peer may take nothing of the request; a body larger than 64 KiB
	// gets it anew for every 64 KiB. Fires as ClockWrite, up to half its length late.
	Write time.Duration
	// FirstByte runs from the moment the request is sent until the whole response head is
	// there. Fires as ClockFirstByte.
	FirstByte time.Duration
	// FirstOutput runs from the moment the request is sent until [Call.OutputSeen]. While it
	// runs, Idle does not. Fires as ClockFirstOutput.
	FirstOutput time.Duration
	// Idle is the longest silence within the body, measured while somebody waits for it. Any
	// byte starts it anew. Fires as ClockIdle.
	Idle time.Duration
	// Deadline is absolute and bounds all phases; zero means none.
	Deadline time.Time
	// DeadlineFact is what Deadline fires as: ClockTotal (also the zero value) or ClockReserve.
	DeadlineFact failure.Transport
}

// Times are the moments of an exchange; zero where it did not come that far. After a
// re-dial they are those of the connection in use.
type Times struct {
	Started   time.Time // Head was called first
	Connected time.Time // a connection was in hand (dialled, or taken from the pool)
	Sent      time.Time // the whole request was handed to the kernel
	FirstByte time.Time // the first response byte, of a 1xx head too
	Head      time.Time // the final response head was complete
	LastByte  time.Time // the last byte read so far
}
