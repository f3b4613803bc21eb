package flow

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/recovery"
)

// conclude ends a request that was not answered: it finds the terminal reason and the error
// the caller gets, and settles.
func (x *Exchange) conclude() event {
	x.stage = over
	t, e := x.verdictOnRequest()
	x.failure = e
	status := e.Status
	switch {
	case t == failure.CallerLeft:
		status = x.sentStatus()
	case x.committed.status():
		status = 200
	}
	x.settle(t, status)
	return failed
}

func (x *Exchange) verdictOnRequest() (failure.Terminal, *openai.Error) {
	switch {
	case x.sig.gone():
		return failure.CallerLeft, openai.NewError(openai.InternalError, "The caller has left.")
	case x.committed.output():
		return failure.Partial, x.partial()
	case x.guarding.denied != nil:
		return failure.PolicyStop, x.guarding.denied
	case x.sig.ending():
		return failure.PolicyStop, after(openai.NewError(openai.GatewayShutdown, "The gateway is shutting down."), time.Second)
	case x.m.Made() == 0:
		return x.neverTried()
	default:
		return x.failedAttempts()
	}
}

// partial is the error of an answer that broke after some of it had gone downstream.
func (x *Exchange) partial() *openai.Error {
	if e := x.guarding.denied; e != nil {
		return e
	}
	msg := "The upstream connection was lost before the answer was complete."
	switch {
	case x.sig.ending():
		msg = "The gateway is shutting down; the answer is not complete."
	case x.last.err.Message != "":
		msg = "The upstream failed before the answer was complete: " + x.redacted(x.last.err.Message)
	case x.last.transport == failure.TransportOK:
		msg = "The upstream ended its answer before it was complete."
	case x.last.transport == failure.ClockIdle:
		msg = "The upstream fell silent before the answer was complete."
	case x.last.transport == failure.ClockTotal:
		msg = "The answer took longer than allowed and is not complete."
	}
	return openai.NewError(openai.PartialStream, msg)
}

// neverTried is the end of a request for which no attempt could be made.
func (x *Exchange) neverTried() (failure.Terminal, *openai.Error) {
	b := x.blocked()
	switch {
	case x.unavailable:
		return failure.PolicyStop, openai.NewError(openai.StorageUnavailable, "The gateway cannot keep a record of the attempt.")
	case x.actionSpent:
		return failure.PolicyStop, openai.NewError(openai.AttemptsExhausted, "The attempts of this user action are spent.")
	case b.queue > 0:
		return failure.PolicyStop, after(openai.NewError(openai.QueueFull, "Every channel for this model is busy and its queue is full."), time.Second)
	case b.groups > 0:
		return failure.PolicyStop, after(openai.NewError(openai.GroupsFull, "Every group of this key has reached its requests per minute."), b.groupFrees)
	case b.cooling > 0 && b.cooling == b.all:
		return failure.Exhausted, after(openai.RoutesExhaustedWith(429, "Every route for this model is rate limited."), b.cools)
	case x.timeUp:
		return failure.Exhausted, openai.NewError(openai.DeadlineExceeded, "The deadline passed before an attempt could be made.")
	default:
		return failure.Exhausted, openai.NewError(openai.NoEligibleRoute, "No route for this model can be used now.")
	}
}

func after(e *openai.Error, d time.Duration) *openai.Error {
	e.HasRetryAfter, e.RetryAfter = true, d
	return e
}

// failedAttempts is the end of a request whose attempts all failed before output.
func (x *Exchange) failedAttempts() (failure.Terminal, *openai.Error) {
	l := &x.last
	t := failure.TerminalOf(l.class, l.phase, x.ranOut || x.step.Interlock == recovery.Budget)
	switch l.class {
	case failure.ClientInvalid, failure.ContextOverflow, failure.ContentFiltered:
		return t, x.callers(l)
	case failure.Unknown:
		if l.status >= 400 && l.status <= 499 {
			return t, openai.NewError(openai.UpstreamRejected, x.told("The upstream rejected the request"))
		}
		return t, openai.NewError(openai.OutcomeUnknown, x.told("The upstream may or may not have processed the request"))
	}
	switch {
	case x.actionSpent:
		return failure.Exhausted, openai.NewError(openai.AttemptsExhausted, x.told("The attempts of this user action are spent"))
	case t == failure.PolicyStop && l.mayBeDone && !x.idempotent:
		return t, openai.NewError(openai.OutcomeUnknown, x.told("The upstream may have processed the request, which is not safe to repeat"))
	case l.deadlineEnded || x.timeUp || x.tooLate():
		return failure.Exhausted, openai.NewError(openai.DeadlineExceeded, "The deadline passed before a route answered.")
	case x.onlyRateLimited():
		return failure.Exhausted, after(openai.RoutesExhaustedWith(429, x.told("Every route for this model is rate limited")), x.soonestRoute())
	default:
		return t, openai.RoutesExhaustedWith(502, x.told("Every route for this model failed"))
	}
}

// tooLate reports whether too little time is left for a further attempt that would have
// been made.
func (x *Exchange) tooLate() bool {
	d := x.m.Deadline()
	return x.ranOut && !d.IsZero() && x.g.now().Add(x.budget.minUseful).After(d)
}

// callersCodes are OpenAI's codes for what some providers have none.
var callersCodes = map[failure.Class]string{
	failure.ContextOverflow: "context_length_exceeded", failure.ContentFiltered: "content_filter",
}

// callers is an upstream's error that is the caller's: its status, type, code and message.
func (x *Exchange) callers(l *lastFailure) *openai.Error {
	status := l.status
	if status == 0 { // nothing was sent: the adapter refused it
		status = l.err.Status
	}
	if status < 400 || status > 499 {
		status = 400
	}
	u := l.err
	if u.Message == "" {
		u.Message = "The upstream refused the request as invalid."
	}
	if u.Code == "" { // callers of OpenAI's API look for these words
		u.Code = callersCodes[l.class]
	}
	return openai.FromUpstream(status, u, x.secrets()...)
}

// told appends what the upstream said last to a message of ours.
func (x *Exchange) told(msg string) string {
	l := &x.last
	msg += ". The last failure was " + l.class.String() + " " + l.phase.String()
	if said := x.redacted(l.err.Message); said != "" {
		return msg + ": " + said
	}
	return msg + "."
}

func (x *Exchange) redacted(msg string) string {
	if msg == "" {
		return ""
	}
	return openai.Redact(msg, x.secrets()...)
}

// secrets is what must never show in a message: the credential of every channel that was
// asked, and the caller's own key.
func (x *Exchange) secrets() []string {
	s := make([]string, 0, len(x.targets)+1)
	for i := range x.targets {
		s = append(s, x.targets[i].link.secrets...)
	}
	if k := callerKey(x.head); len(k) > 0 {
		s = append(s, string(k))
	}
	return s
}

// onlyRateLimited reports whether the last failure of each route that was tried is a rate limit.
func (x *Exchange) onlyRateLimited() bool {
	for i := range x.targets {
		t := &x.targets[i]
		if x.m.OnRoute(uint16(i)) > 0 && t.lastClass != failure.RateLimited {
			return false
		}
	}
	return x.m.Made() > 0
}

// soonestRoute is how long until the first of the routes may be asked again.
func (x *Exchange) soonestRoute() time.Duration {
	now := x.g.now()
	x.refresh(now)
	best := time.Duration(-1)
	for i := range x.cands {
		c := &x.cands[i]
		if c.State != recovery.Cooling {
			continue
		}
		if d := max(0, c.Until.Sub(now)); best < 0 || d < best {
			best = d
		}
	}
	if best < 0 {
		return time.Second
	}
	return best
}

// blocked counts why candidates of the requested model could not be used.
type blocked struct {
	all, queue, groups, cooling int
	groupFrees, cools           time.Duration // until the first frees
}

func (x *Exchange) blocked() blocked {
	now := x.g.now()
	x.refresh(now)
	var b blocked
	for i := range x.cands {
		t, c := &x.targets[i], &x.cands[i]
		if t.substitute > 0 {
			continue
		}
		b.all++
		switch {
		case t.full:
			b.queue++
		case t.groupFull > 0:
			if b.groups++; b.groupFrees == 0 || t.groupFull < b.groupFrees {
				b.groupFrees = t.groupFull
			}
		case c.State == recovery.Cooling:
			if d := max(0, c.Until.Sub(now)); b.cooling == 0 || d < b.cools {
				b.cools = d
			}
			b.cooling++
		}
	}
	return b
}
