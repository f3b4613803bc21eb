package recovery

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// State says whether a candidate may be used right now. The zero value is the safe one.
type State uint8

// The states of a candidate.
const (
	Unusable State = iota // killed, isolated, circuit open, no capacity
	Ready                 // closed circuit, capacity
	HalfOpen              // a probe may be let through
	Cooling               // its account rests until Candidate.Until
)

// Candidate is one route as it is at this moment. Plain values: the caller fills them anew
// each time it asks.
type Candidate struct {
	Route uint16 // the route's number in the request's plan; the same number is the same route
	Group uint16 // the group's number
	Model uint16 // 0 = the requested model, n = the alias's n-th substitute

	State  State
	Until  time.Time // Cooling: when it ends
	Off    Causes    // acts that a switch forbids on this route
	Permit bool      // Start only: a half-open circuit gave a probe permit
	// Recorded says, at Start only, that the attempt's ledger record is open.
	Recorded bool

	Mapped      bool // the channel answers with another model than it is asked for
	OffContract bool // it does not satisfy the contract, or lacks the evidence the contract demands
	Verified    bool // fresh evidence for every schema feature this request uses
	Substitute  Substitute
}

// Substitute holds what interlock 6 demands of another model.
type Substitute struct {
	Listed    bool // the alias lists it
	Meets     bool // the alias's whole `requires`, and the contract
	Priced    bool // under its price ceiling
	AboveGate bool // not below a quality gate
	Approved  bool // by the policy
	Refused   bool // by the policy, in this request: no time is kept for it
	Discloses bool // the answer will say so
}

func (s Substitute) admissible() bool {
	return s.Listed && s.Meets && s.Priced && s.AboveGate && s.Approved && s.Discloses
}

// possible reports whether the policy may still approve it: reason enough to keep time.
func (s Substitute) possible() bool {
	return s.Listed && s.Meets && s.Priced && s.AboveGate && s.Discloses && !s.Refused
}

// equal reports whether the candidate serves the requested model under the same contract.
func (c *Candidate) equal() bool { return c.Model == 0 && !c.Mapped && !c.OffContract }

// Causes is a set of attempt causes.
type Causes uint8

// With returns the set with c in it.
func (s Causes) With(c failure.Cause) Causes { return s | 1<<c }

// Has reports whether c is in the set.
func (s Causes) Has(c failure.Cause) bool { return s&(1<<c) != 0 }
