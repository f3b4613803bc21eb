package flow

import (
	"math/rand/v2"
	"time"

	"github.com/interlock-gateway/interlock/gateway/recovery"
)

// stage is where the recovery loop stands. The loop is a resumable value: it is driven by the
// front's handler until something must be written, and goes on from the body writer.
type stage uint8

const (
	choosing stage = iota // step says what is next
	pausing               // backoff or Retry-After, until x.until
	entering              // capacity, permit, record: the last look before an attempt
	queueing              // waiting for the channel's capacity, until x.until
	heading               // the call is out, its head is not in
	reading               // the answer is being read
	over                  // concluded
)

// event is why drive returned.
type event uint8

const (
	beat     event = iota // a heartbeat is due
	output                // x.out holds bytes to pass on; more will follow
	finished              // the answer is whole: x.out or x.body holds the last of it
	failed                // x.failure says how the request ends
)

// maxRefusals bounds how often a chosen candidate may turn out unusable in one request, so
// that a flapping switch cannot keep a request busy.
const maxRefusals = 64

// drive runs the recovery loop until something has to be written or waited for.
func (x *Exchange) drive() event {
	for {
		switch x.stage {
		case choosing:
			if !x.step.Go {
				return x.conclude()
			}
			x.stage = entering
			if x.step.Delay > 0 {
				x.until, x.stage = x.step.NotBefore, pausing
			}
		case pausing:
			if x.pauseOut() {
				return beat
			}
		case entering:
			x.enter()
		case queueing:
			if x.queueOut() {
				return beat
			}
		case heading:
			if x.awaitHead() {
				return beat
			}
		case reading:
			if ev, stop := x.read(); stop {
				return ev
			}
		default:
			return failed
		}
	}
}

// soonest returns the earlier of t and the next heartbeat.
func (x *Exchange) soonest(t time.Time) time.Time {
	if !x.heartbeat.IsZero() && (t.IsZero() || x.heartbeat.Before(t)) {
		return x.heartbeat
	}
	return t
}

// beatDue reports whether a heartbeat is due and, if so, sets the next one.
func (x *Exchange) beatDue(now time.Time) bool {
	if x.heartbeat.IsZero() || now.Before(x.heartbeat) {
		return false
	}
	x.heartbeat = now.Add(x.gen.stream.heartbeat)
	return true
}

// pauseOut waits out the delay of a step. It returns true when a heartbeat is due first.
func (x *Exchange) pauseOut() bool {
	began := x.g.now()
	x.sig.pause(x.soonest(x.until), x.g.now, x.changed)
	now := x.g.now()
	x.spent += now.Sub(began)
	switch {
	case x.sig.over():
		x.halt()
	case !now.Before(x.until):
		x.stage = entering
	case x.beatDue(now):
		return true
	default: // a switch changed: is the step still possible?
		if x.refresh(now); !x.usable(x.step) {
			x.choose(now)
		}
	}
	return false
}

// usable reports whether a switch has closed the step's route since it was chosen.
func (x *Exchange) usable(s recovery.Step) bool {
	c := &x.cands[s.Candidate]
	return c.State != recovery.Unusable && !c.Off.Has(s.Cause) && !x.off.Has(s.Cause)
}

// choose takes the next step with the candidates as they are now: the first attempt, or what
// the latest verdict still allows.
func (x *Exchange) choose(now time.Time) {
	x.stage = choosing
	if x.refusals++; x.refusals > maxRefusals {
		x.step = recovery.Step{}
		return
	}
	x.refresh(now)
	x.preferFree()
	if !x.decided {
		x.step, x.why = x.m.First(now, x.cands), "initial"
		if !x.step.Go && x.step.Interlock == recovery.NoInterlock {
			x.chooseWithout(now)
		}
		return
	}
	x.step = x.m.Decide(now, x.cands, x.verdict(), rand.Float64())
	x.overruled()
}

// chooseWithout asks the policy what to do where no route of the requested model can be used
// at all: a substitute may answer without any attempt before it.
func (x *Exchange) chooseWithout(now time.Time) {
	if len(x.targets) == 0 || x.targets[len(x.targets)-1].substitute == 0 {
		return // no substitute is listed
	}
	x.decide(now, recovery.Failure{}, false)
}

func (x *Exchange) verdict() recovery.Verdict {
	return recovery.Verdict{Actions: x.ask.Actions, Delay: x.ask.Delay}
}

// overruled counts an interlock that the verdict would have broken.
func (x *Exchange) overruled() {
	if i := x.step.Overruled; i != recovery.NoInterlock {
		x.g.metrics.CountOverrule(i.String())
		x.g.log.Warn("an interlock overruled the policy", "request_id", x.id, "interlock", i.String(),
			"rule", x.ask.Rule, "reason", x.ask.Reason)
	}
}

// halt ends the loop because the caller has left or the gateway is shutting down.
func (x *Exchange) halt() {
	x.m.Cancel()
	x.step, x.stage = recovery.Step{Interlock: recovery.Cancelled}, choosing
}
