package route

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// Outcome is how an attempt ended, for the route's health.
type Outcome struct {
	Class  failure.Class  // None = it answered
	Health failure.Health // the effect, as the policy decided it
	Scope  breaker.Scope  // what the failure says something about
	Reason string         // code, for the operator
	// RetryAfter is how long the provider asked to be left alone; 0 = it did not. Backoff is
	// what applies instead.
	RetryAfter time.Duration
	Backoff    time.Duration
	// FirstOutput is the time from the attempt's start to its first output; 0 = none came.
	FirstOutput time.Duration
}

// Permit is the right to make one attempt on a route, and the duty to say how it ended:
// exactly one Report or Drop takes effect, whatever comes after it does nothing. The zero
// value holds nothing. It belongs to one goroutine and must not be copied while it is held.
type Permit struct{}

// Route returns the route, nil if nothing is held.
func (p *Permit) Route() *Route { panic("skeleton") }

// CircuitWord returns the circuit's state when the attempt started, for the ledger: closed or
// half_open.
func (p *Permit) CircuitWord() string { panic("skeleton") }

// Answering tells that meaningful output keeps coming. A probe that has been answering for
// longer than the circuit would stay open is proof enough: it counts as good at once, so that
// one long stream does not keep a healthy route half-open. It may be called as often as
// convenient.
func (p *Permit) Answering(now time.Time) { panic("skeleton") }

// Report ends the attempt and applies what it proved: to the circuit of its scope, to the
// account's cool-down, to the credential's isolation. An attempt whose caller left
// (Cancelled) proves nothing.
func (p *Permit) Report(now time.Time, o Outcome) { panic("skeleton") }

// Drop ends the attempt without a proof of anything: a probe's permit is free again.
func (p *Permit) Drop(now time.Time) { panic("skeleton") }
