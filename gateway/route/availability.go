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

var usabilityNames = [...]string{"switched_off", "isolated", "open", "cooling", "full", "half_open", "ready"}

func (u Usability) String() string { return usabilityNames[u] }

// Usable reports whether an attempt may be made.
func (u Usability) Usable() bool { return u >= HalfOpen }

// Ask is what a question for a route's availability depends on.
type Ask struct {
	// SameRoute: for a same-route retry, which is never a probe.
	SameRoute bool
	// Entered: the channel's Gate has been entered for this attempt; its capacity is no question.
	Entered bool
	// Uses is what the request makes use of; circuits of other capabilities do not concern it.
	Uses breaker.Capabilities
}

// Availability is a route's state at one moment.
type Availability struct {
	State Usability
	// Until is when that ends, or when a probe may start; zero where that is not known.
	Until  time.Time
	Reason string // a code from the list below; "" when Ready
	Busy   bool   // usable, but an attempt would have to wait in the channel's queue
}

// The reasons. That a probe is out, or that a same-route retry is never one, is an Open.
const (
	ReasonSwitchedOff = "switched_off"
	ReasonIsolated    = "isolated"
	ReasonOpen        = "circuit_open"
	ReasonProbe       = "half_open"
	ReasonCooling     = "cooling"
	ReasonFull        = "queue_full"
)

// Availability says whether the route may be used now. It changes nothing, and allocates
// nothing but after a change of switches or circuits.
func (r *Route) Availability(now time.Time, ask Ask) Availability {
	a := r.health(now, ask)
	if ask.Entered || !a.State.Usable() {
		return a
	}
	switch free, place := r.Channel.Gate.Room(); {
	case free:
	case place:
		a.Busy = true
	default:
		return Availability{State: Full, Reason: ReasonFull}
	}
	return a
}

// health is Availability without the channel's capacity.
func (r *Route) health(now time.Time, ask Ask) Availability {
	if sw := r.switchedOff(now); sw != nil {
		return Availability{State: SwitchedOff, Until: sw.Until, Reason: ReasonSwitchedOff}
	}
	probe := false
	switch s, until := r.Channel.account.isolation.Room(now); {
	case s == breaker.Open, s == breaker.HalfOpen && ask.SameRoute:
		return Availability{State: Isolated, Until: until, Reason: ReasonIsolated}
	case s == breaker.HalfOpen:
		probe = true
	}
	s, until := r.own.Room(now)
	concerns := r.concerns()
	for i := range concerns {
		c := &concerns[i]
		if !c.Concerns(ask.Uses) {
			continue
		}
		if also, end := c.Room(now); also > s || also == s && end.After(until) {
			s, until = also, end
		}
	}
	switch {
	case s == breaker.Open && !until.IsZero():
		return Availability{State: Open, Until: until, Reason: ReasonOpen}
	case s == breaker.Open, s == breaker.HalfOpen && ask.SameRoute:
		return Availability{State: Open, Reason: ReasonProbe}
	}
	if until, rests := r.Channel.account.cool.Until(r.Upstream, now); rests {
		return Availability{State: Cooling, Until: until, Reason: ReasonCooling}
	}
	if probe || s == breaker.HalfOpen {
		return Availability{State: HalfOpen, Reason: ReasonProbe}
	}
	return Availability{State: Ready}
}
