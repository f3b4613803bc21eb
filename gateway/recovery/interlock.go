package recovery

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Interlock names one of the ten rules that no policy can loosen. The zero value is none.
type Interlock uint8

// The interlocks.
const (
	NoInterlock  Interlock = iota
	Cancelled              // after the caller has gone no attempt starts
	Committed              // after meaningful output went downstream no attempt starts
	Budget                 // attempts, elapsed time, reserve and minimum useful time hold
	RetryAfter             // never the same route before the provider said so
	Contract               // a same-contract fallback stays within the contract
	Substitution           // another model only if listed, fit, priced, approved, allowed and disclosed
	Denial                 // a gateway denial is terminal
	SideEffect             // nothing is replayed while a tool execution's end is unknown
	SwitchedOff            // a killed, isolated, cooling or open route or action is not used
	Evidence               // the attempt's record is open before its first byte leaves, closed once
	interlocks
)

var interlockNames = [interlocks]string{
	"", "cancelled", "committed", "budget", "retry_after", "contract", "substitution", "denial",
	"side_effect", "switched_off", "evidence",
}

// String returns the interlock's word as in the reason "interlock:<name>".
func (i Interlock) String() string { return interlockNames[i] }

// Reason returns "interlock:<name>".
func (i Interlock) Reason() string { return interlockReasons[i] }

// Interlocks lists the ten.
func Interlocks() []Interlock {
	all := make([]Interlock, 0, interlocks-1)
	for i := Cancelled; i < interlocks; i++ {
		all = append(all, i)
	}
	return all
}

var interlockReasons = func() (r [interlocks]string) {
	for i := Cancelled; i < interlocks; i++ {
		r[i] = "interlock:" + interlockNames[i]
	}
	return r
}()

// proposal is one attempt that somebody wants to start.
type proposal struct {
	cause failure.Cause
	to    *Candidate
	now   time.Time // when it is looked at
	at    time.Time // when it would start
	delay time.Duration
	begin bool // it starts now: Start asks, not Decide
}

// rule is one interlock: it reports whether the proposal keeps it.
type rule func(*Machine, *proposal) bool

// rules holds every interlock; a Machine points to the one table below. Tests prove each
// rule necessary by leaving it out of a copy.
type rules [interlocks]rule

var theInterlocks = rules{
	Cancelled:    func(m *Machine, _ *proposal) bool { return !m.cancelled },
	Committed:    func(m *Machine, _ *proposal) bool { return !m.committed },
	Budget:       (*Machine).withinBudget,
	RetryAfter:   (*Machine).afterRetryAfter,
	Contract:     (*Machine).withinContract,
	Substitution: (*Machine).approvedSubstitution,
	Denial:       func(m *Machine, _ *proposal) bool { return m.last.Class != failure.GatewayDenied },
	SideEffect:   func(m *Machine, _ *proposal) bool { return !m.sideEffect },
	SwitchedOff:  (*Machine).switchedOn,
	Evidence:     (*Machine).evidenced,
}

// whole reports whether the interlock is about the request rather than one candidate: no
// other action can help once it is broken.
func (i Interlock) whole() bool {
	switch i {
	case Cancelled, Committed, Denial, SideEffect, Evidence:
		return true
	default:
		return false
	}
}

// broken returns the first interlock that the proposal breaks, or NoInterlock.
func (m *Machine) broken(p *proposal) Interlock {
	for i := Cancelled; i < interlocks; i++ {
		if r := m.rules[i]; r != nil && !r(m, p) {
			return i
		}
	}
	return NoInterlock
}

func (m *Machine) withinBudget(p *proposal) bool {
	l := &m.limits
	if m.made >= l.MaxAttempts || l.UserAction.Counted && m.made >= l.UserAction.Left {
		return false
	}
	if m.onRoute(p.to.Route) >= l.MaxPerRoute || m.onGroup(p.to.Group) >= l.MaxPerGroup {
		return false
	}
	if !p.begin && p.delay > l.Backoff.MaxWait {
		return false
	}
	if l.Deadline.IsZero() {
		return true
	}
	if m.made == 0 { // reserve and minimum bound later attempts, never the first
		return p.at.Before(l.Deadline)
	}
	end := l.Deadline
	if p.cause == failure.SameRouteRetry && m.othersLeft {
		end = end.Add(-m.reserve())
	}
	return !p.at.Add(l.MinUseful).After(end)
}

func (m *Machine) afterRetryAfter(p *proposal) bool {
	if !m.latest(p.to.Route) {
		return true
	}
	return !p.at.Before(m.notBefore)
}

func (m *Machine) withinContract(p *proposal) bool {
	switch p.cause {
	case failure.SameContractFallback:
		return !m.latest(p.to.Route) && p.to.equal()
	case failure.Initial:
		return p.to.equal()
	case failure.SameRouteRetry:
		return m.latest(p.to.Route) && p.to.Model == m.model
	default:
		return true
	}
}

func (m *Machine) approvedSubstitution(p *proposal) bool {
	if p.to.Model == 0 {
		return p.cause != failure.ModelSubstitution
	}
	switch p.cause {
	case failure.ModelSubstitution, failure.SameRouteRetry:
		return !m.limits.SubstitutionDenied && p.to.Substitute.admissible()
	default:
		return false
	}
}

func (m *Machine) switchedOn(p *proposal) bool {
	if p.cause != failure.Initial && m.off.Has(p.cause) || p.to.Off.Has(p.cause) {
		return false
	}
	switch p.to.State {
	case Ready:
		return true
	case HalfOpen:
		return p.cause != failure.SameRouteRetry && (!p.begin || p.to.Permit)
	case Cooling:
		// The wait may outlast the cool-down; at the start it must be over.
		return !p.begin && p.cause == failure.SameRouteRetry && !p.at.Before(p.to.Until)
	default:
		return false
	}
}

func (m *Machine) evidenced(p *proposal) bool {
	if m.open { // the attempt before it is not closed
		return false
	}
	return !p.begin || p.to.Recorded
}
