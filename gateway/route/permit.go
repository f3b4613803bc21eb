package route

import (
	"cmp"
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
type Permit struct {
	route   *Route
	started time.Time

	isolation breaker.Pass
	own       breaker.Pass
	wider     []breaker.Concern // immutable, shared
	passes    [breaker.MaxConcerns]breaker.Pass
	entered   uint16 // bits: which of wider gave leave
	probe     bool   // of a circuit
}

// Enter looks again at the moment an attempt starts, with the channel's Gate already entered,
// and fills p with the right to make it; of a half-open circuit, with a probe's permit. p holds
// nothing unless the returned state is usable.
func (r *Route) Enter(p *Permit, now time.Time, ask Ask) Availability {
	p.Drop(now)
	a := r.health(now, ask)
	if !a.State.Usable() {
		return a
	}
	*p = Permit{route: r, started: now, wider: r.concerns()}
	if p.enter(now, ask.Uses) && !(ask.SameRoute && p.probes()) {
		return a
	}
	p.Drop(now)
	if a = r.health(now, ask); a.State.Usable() { // it was, and is again: a probe has just ended
		a = Availability{State: Open, Reason: ReasonProbe}
	}
	return a
}

// enter asks everything that can refuse; what gave leave before another refused is given back
// by Drop.
func (p *Permit) enter(now time.Time, uses breaker.Capabilities) bool {
	r := p.route
	var ok bool
	if p.isolation, ok = r.Channel.account.isolation.Enter(now); !ok {
		return false
	}
	if p.own, ok = r.own.Enter(now); !ok {
		return false
	}
	p.probe = p.own.Probe()
	for i := range p.wider {
		c := &p.wider[i]
		if !c.Concerns(uses) {
			continue
		}
		if p.passes[i], ok = c.Enter(now); !ok {
			return false
		}
		p.entered |= 1 << i
		p.probe = p.probe || p.passes[i].Probe()
	}
	return true
}

// probes reports whether the attempt is a probe of anything.
func (p *Permit) probes() bool { return p.probe || p.isolation.Probe() }

// Route returns the route, nil if nothing is held.
func (p *Permit) Route() *Route { return p.route }

// CircuitWord returns the circuit's state when the attempt started, for the ledger: closed or
// half_open.
func (p *Permit) CircuitWord() string {
	if p.probe {
		return breaker.HalfOpen.String()
	}
	return breaker.Closed.String()
}

// Answering tells that meaningful output keeps coming. A probe that has been answering for
// longer than the circuit would stay open is proof enough: it counts as good at once, so that
// one long stream does not keep a healthy route half-open. It may be called as often as
// convenient.
func (p *Permit) Answering(now time.Time) {
	if p.route == nil || !p.probes() || now.Sub(p.started) < p.route.state.circuits.Settings().OpenFor {
		return
	}
	p.tell(now, breaker.Good, breaker.Good, nil)
	p.again(now)
}

// again asks for leave anew, for the rest of an attempt that was a good probe: how it ends is
// then an ordinary outcome.
func (p *Permit) again(now time.Time) {
	renew := func(c *breaker.Circuit, old breaker.Pass) breaker.Pass {
		if !old.Probe() {
			return old
		}
		pass, ok := c.Enter(now)
		if ok && pass.Probe() { // more probes are wanted: this one has been one
			c.Report(pass, now, breaker.Neutral)
			return breaker.Pass{}
		}
		return pass
	}
	p.own = renew(p.route.own, p.own)
	for i := range p.wider {
		p.passes[i] = renew(p.wider[i].Circuit, p.passes[i])
	}
	p.isolation, p.probe = breaker.Pass{}, false
}

// Report ends the attempt and applies what it proved: to the circuit of its scope, to the
// account's cool-down, to the credential's isolation. An attempt whose caller left
// (Cancelled) proves nothing.
func (p *Permit) Report(now time.Time, o Outcome) {
	r := p.route
	if r == nil {
		return
	}
	channel := r.Channel.state
	channel.saw(o.FirstOutput)
	effect := o.Health
	if o.Class == failure.Cancelled {
		effect = failure.Neutral
	}
	switch {
	case o.Class == failure.None:
		p.tell(now, breaker.Good, breaker.Good, nil)
	case effect == failure.Counts:
		blamed := r.blamed(o.Scope)
		p.tell(now, breaker.Neutral, breaker.Neutral, blamed)
	case effect == failure.Isolates:
		p.tell(now, breaker.Neutral, breaker.Bad, nil)
		r.Channel.account.isolate(cmp.Or(o.Reason, o.Class.String()), r.Channel.Fingerprint, now)
	case effect == failure.Cools:
		p.tell(now, breaker.Neutral, breaker.Neutral, nil)
		r.rest(now, &o)
	default:
		p.tell(now, breaker.Neutral, breaker.Neutral, nil)
	}
	if o.Class != failure.None && effect != failure.Neutral {
		channel.last.Store(&Failure{At: now, Class: o.Class, Reason: o.Reason, Model: r.Model})
	}
	*p = Permit{}
}

// Drop ends the attempt without a proof of anything: a probe's permit is free again.
func (p *Permit) Drop(now time.Time) {
	if p.route == nil {
		return
	}
	p.tell(now, breaker.Neutral, breaker.Neutral, nil)
	*p = Permit{}
}

// tell says how the attempt ended: to every circuit but the one that is blamed, to the
// isolation, and to the blamed circuit that it failed.
func (p *Permit) tell(now time.Time, circuits, isolation breaker.Verdict, blamed *breaker.Circuit) {
	r := p.route
	if _, ended := r.Channel.account.isolation.Report(p.isolation, now, isolation); ended {
		r.Channel.account.released(endedByProbe, now)
	}
	told := blamed == nil
	say := func(c *breaker.Circuit, pass breaker.Pass) {
		if c == blamed {
			told = true
			c.Report(pass, now, breaker.Bad)
			return
		}
		c.Report(pass, now, circuits)
	}
	say(r.own, p.own)
	for i := range p.wider {
		if p.entered&(1<<i) != 0 {
			say(p.wider[i].Circuit, p.passes[i])
		}
	}
	if told {
		return
	}
	// The circuit came into being after the attempt began, or is of a capability that the
	// request did not declare. If it is closed the failure counts.
	if pass, ok := blamed.Enter(now); ok {
		if pass.Probe() {
			blamed.Report(pass, now, breaker.Neutral)
		} else {
			blamed.Report(pass, now, breaker.Bad)
		}
	}
}

// blamed returns the circuit of a scope that concerns the route; its own where there is none.
func (r *Route) blamed(s breaker.Scope) *breaker.Circuit {
	if s == breaker.ChannelModel {
		return r.own
	}
	k, ok := r.place.Key(s)
	if !ok {
		return r.own
	}
	return r.state.circuits.Circuit(k)
}

// rest lets the account rest: for this model, unless the failure is about more than that.
func (r *Route) rest(now time.Time, o *Outcome) {
	d := o.RetryAfter
	if d <= 0 {
		d = o.Backoff
	}
	model := r.Upstream
	switch o.Scope {
	case breaker.Account, breaker.Channel, breaker.Provider, breaker.Region:
		model = ""
	}
	r.Channel.account.cool.Rest(model, now, d)
}
