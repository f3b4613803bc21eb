package route

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// Usability says whether a route may be used now. The zero value is the safe one.
type Usability uint8

// The usabilities.
const (
	SwitchedOff Usability = iota // by a kill switch
	Isolated                     // its credential is dead
	Open                         // a circuit is open, or half-open with every probe out
	Cooling                      // its account rests until Until
	Full                         // no permit is free and the queue is full
	HalfOpen                     // one probe may be let through
	Ready
)

// Usable reports whether an attempt may be made.
func (u Usability) Usable() bool { return u >= HalfOpen }

// Ask is what a question for a route's availability depends on.
type Ask struct {
	// SameRoute: for a same-route retry, which is never a probe.
	SameRoute bool
	// Uses is what the request makes use of; circuits of other capabilities do not concern it.
	Uses breaker.Capabilities
}

// Availability is a route's state at one moment.
type Availability struct {
	State  Usability
	Until  time.Time // Cooling, Open, Isolated: when that ends or a probe may start; SwitchedOff: zero if without end
	Reason string    // "" when Ready; a code from a fixed list, or what an operator wrote with a switch
	Busy   bool      // usable, but an attempt would have to wait in the channel's queue
}
