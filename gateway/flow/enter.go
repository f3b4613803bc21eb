package flow

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// enter is the way into an attempt: capacity of the channel, then the last look. It leaves
// the exchange queueing, heading, or choosing again.
func (x *Exchange) enter() {
	if x.sig.over() {
		x.halt()
		return
	}
	t := &x.targets[x.step.Candidate]
	gate := t.route.Channel.Gate
	if gate.TryEnter() {
		x.at.gate = gate
		x.lastLook()
		return
	}
	now := x.g.now()
	if !gate.Enqueue(&x.at.ticket, x.caller.key.Name, now) {
		t.full = true
		x.choose(now)
		return
	}
	x.sig.queued(&x.at.ticket)
	x.stage = queueing
}

// queueOut waits for the channel's capacity. It returns true when a heartbeat is due first.
func (x *Exchange) queueOut() bool {
	began := x.g.now()
	t := &x.targets[x.step.Candidate]
	r := x.at.ticket.Wait(x.m.Deadline(), x.heartbeat, x.changed)
	now := x.g.now()
	x.spent += now.Sub(began)
	switch r {
	case limit.Woken:
		return x.beatDue(now)
	case limit.Changed: // a switch: is the place still worth waiting for?
		if x.refresh(now); x.usable(x.step) {
			return false
		}
		x.at.ticket.Cancel()
		return false // the next Wait says Cancelled
	}
	x.sig.queued(nil)
	switch r {
	case limit.Entered:
		x.at.gate = t.route.Channel.Gate
		x.lastLook()
	case limit.Cancelled:
		if x.sig.over() {
			x.halt()
			return false
		}
		x.choose(now)
	default: // waited out, or pushed out
		t.full = true
		x.timeUp = !x.m.Deadline().IsZero() && !now.Before(x.m.Deadline())
		x.choose(now)
	}
	return false
}

// lastLook is interlock 9 and the others at the moment the attempt starts, after any queue
// and backoff; then the record is opened and the call goes out. On any refusal the capacity
// is given back and another step is chosen.
func (x *Exchange) lastLook() {
	now := x.g.now()
	i := x.step.Candidate
	t, c := &x.targets[i], &x.cands[i]
	t.full = false
	x.refresh(now)
	if c.State == recovery.Unusable || x.m.Check(now, x.step.Cause, c) != recovery.NoInterlock {
		x.backOut(now)
		return
	}
	circuit := t.route.CircuitWord(now)
	if av := t.route.Enter(&x.at.permit, now, x.askFor(i)); !av.State.Usable() {
		t.refused = av.State == route.Open || av.State == route.SwitchedOff
		x.backOut(now)
		return
	}
	if !x.admitTo(t, now) {
		x.at.permit.Drop(now)
		x.backOut(now)
		return
	}
	if x.counted && !x.g.actions.take(x.action, x.budget.maxPerAction, now) {
		x.actionSpent = true
		x.at.permit.Drop(now)
		x.leaveGate()
		x.step, x.stage = recovery.Step{Interlock: recovery.Budget}, choosing
		return
	}
	if !x.record(now, t, circuit) {
		return
	}
	x.started = *c
	x.started.Recorded, x.started.Permit = true, true
	if b := x.m.Start(now, x.step.Cause, &x.started); b != recovery.NoInterlock {
		// The record is open, so it must be closed: nothing was sent.
		x.at.open = true
		x.closeAttempt(now, &fault{transport: failure.Aborted}, &policy.Failure{Class: failure.Cancelled})
		x.step, x.stage = recovery.Step{Interlock: b}, choosing
		return
	}
	x.at.open = true
	x.launch()
}

// backOut gives the capacity back and chooses again.
func (x *Exchange) backOut(now time.Time) {
	x.leaveGate()
	x.choose(now)
}

func (x *Exchange) leaveGate() {
	if g := x.at.gate; g != nil {
		x.at.gate = nil
		g.Leave()
	}
}

// admitTo counts the request against its group's requests per minute, once.
func (x *Exchange) admitTo(t *target, now time.Time) bool {
	if x.admittedTo(t.link.group) {
		return true
	}
	if ok, next := t.route.Channel.Group.RPM.Take(now); !ok {
		t.groupFull = max(1, min(next.Sub(now), time.Minute))
		return false
	}
	x.admitted = append(x.admitted, t.link.group)
	return true
}

// record opens the attempt in the ledger before its first byte can leave.
func (x *Exchange) record(now time.Time, t *target, circuit string) bool {
	x.at.begin()
	a := x.rec.NextAttempt()
	x.at.number, x.at.cause, x.at.target, x.at.candidate = a.Number, x.step.Cause, t, x.step.Candidate
	a.Cause, a.Reason, a.Delay = x.step.Cause, x.why, x.step.Delay
	a.Group, a.Channel, a.Provider = t.route.Channel.Group.Name, t.route.Channel.Name, t.route.Channel.Provider
	a.Model, a.UpstreamModel, a.Endpoint = t.route.Model, t.route.Upstream, x.rec.Endpoint
	a.Circuit, a.OpenedAt, a.UpstreamAttempts = circuit, now, t.link.amplifies
	a.Contract = x.contract
	if d := x.m.Deadline(); !d.IsZero() {
		a.TimeLeft = ledger.Some(max(0, d.Sub(now)))
	}
	err := x.g.ledger.OpenAttempt(x.rec, a.Number, x.sig.done())
	if err == nil {
		return true
	}
	x.at.permit.Drop(now)
	x.leaveGate()
	if errors.Is(err, ledger.ErrCancelled) {
		x.halt()
		return false
	}
	x.unavailable = true
	x.g.log.Error("the ledger cannot take a record", "request_id", x.id, "error", err.Error())
	x.step, x.stage = recovery.Step{Interlock: recovery.Evidence}, choosing
	return false
}

// clocks are those of the attempt on t.
func (x *Exchange) clocks(t *target) upstream.Clocks {
	r := t.route.Timeouts(x.facts.Stream)
	end, reserve := x.m.AttemptDeadline(x.cands)
	k := upstream.Clocks{
		Connect: r.Connect, Write: writeStall, FirstByte: r.FirstByte, FirstOutput: r.FirstOutput, Idle: r.Idle,
		Deadline: end, DeadlineFact: failure.ClockTotal,
	}
	if reserve {
		k.DeadlineFact = failure.ClockReserve
	}
	x.at.byLimit = x.callersClock
	return k
}

// writeStall is how long an upstream may take nothing of a request's body.
const writeStall = 30 * time.Second

// longest is when even a committed stream ends.
func (x *Exchange) longest() time.Time {
	if x.budget.longest <= 0 {
		return time.Time{}
	}
	return x.rec.ReceivedAt.Add(x.budget.longest)
}

// report tells the route how the attempt ended.
func (x *Exchange) report(now time.Time, class failure.Class, f *fault, v *policy.Failure) {
	o := route.Outcome{Class: class}
	rec := x.rec.Attempt(x.at.number)
	if rec.FirstOutput.Known {
		o.FirstOutput = rec.FirstOutput.Value
	}
	if v != nil {
		o.Health, o.Reason = v.Effect(), v.Reason
		o.Scope, _ = breaker.ParseScope(v.Scope.String())
		o.RetryAfter = f.retryAfter
		o.Backoff = x.budget.backoff.Wait(x.m.OnRoute(uint16(x.at.candidate)), rand.Float64())
	}
	x.at.permit.Report(now, o)
}
