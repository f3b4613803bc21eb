package flow

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/decisionlog"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// fault is what is known of an attempt that did not succeed, before the policy has said what
// class it is.
type fault struct {
	class         failure.Class // what the core or the adapter knows; None = nothing
	transport     failure.Transport
	wire          failure.Wire
	err           openai.UpstreamError
	retryAfter    time.Duration
	hasRetryAfter bool
}

// lastFailure is what the latest failed attempt came to.
type lastFailure struct {
	class         failure.Class
	phase         failure.Phase
	status        int
	transport     failure.Transport
	mayBeDone     bool // the upstream may have processed the request
	err           openai.UpstreamError
	deadlineEnded bool
}

// failTransport ends the attempt with a fact of the transport.
func (x *Exchange) failTransport(err error) {
	f := fault{transport: failure.Malformed}
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		f.transport = e.Transport
	}
	x.fail(f)
}

// failInside ends the attempt with an error that came inside a 2xx answer.
func (x *Exchange) failInside(u openai.UpstreamError) {
	f := x.at.target.link.adapter.ClassifyError(u)
	class := f.Class
	if class == failure.None && u.Status == 0 {
		class = failure.ServerError // an error without a word about whose fault it is
	}
	x.fail(fault{class: class, err: u, retryAfter: f.RetryAfter, hasRetryAfter: f.HasRetryAfter})
}

// failShaping ends an attempt whose request could not be made: nothing was sent.
func (x *Exchange) failShaping(err error) {
	if e, ok := errors.AsType[*adapter.Refusal](err); ok {
		code := openai.InvalidRequest
		if e.Code == string(openai.UnsupportedParameter) {
			code = openai.UnsupportedParameter
		}
		x.fail(fault{class: failure.ClientInvalid, err: openai.UpstreamError{
			Message: e.Message, Type: "invalid_request_error", Code: string(code), Param: e.Param, Status: e.Status,
		}})
		return
	}
	x.failAdapter(err)
}

// failAdapter ends the attempt with what its adapter made of the answer.
func (x *Exchange) failAdapter(err error) {
	if e, ok := errors.AsType[*adapter.Failed](err); ok {
		class := e.Class
		if class == failure.None && e.Failure.Error.Status == 0 {
			class = failure.ServerError // an error without a word about whose fault it is
		}
		x.fail(fault{class: class, err: e.Failure.Error, retryAfter: e.RetryAfter, hasRetryAfter: e.HasRetryAfter})
		return
	}
	if e, ok := errors.AsType[*adapter.Broken](err); ok {
		x.failBroken(e)
		return
	}
	x.fail(fault{class: failure.MalformedAnswer, err: openai.UpstreamError{Message: "The answer is not in the provider's format."}})
}

// failBroken ends the attempt with a failure of the adapter's own. It is a function of the request
// and the answer: asked again it would fail again, so the route is not.
func (x *Exchange) failBroken(e *adapter.Broken) {
	if !x.sig.over() {
		x.g.log.Warn("adapter failed", "request_id", x.id, "channel", x.at.target.link.label, "error", e.Error())
	}
	class := failure.MalformedAnswer
	if e.Passing() {
		class = failure.ServerError
	}
	x.fail(fault{class: class, err: openai.UpstreamError{
		Message: "The channel's adapter failed.", Type: "server_error", Code: "adapter_failed",
	}})
}

// failCut ends the attempt with a stream that ended, however cleanly, before it was whole. Where
// a plugin said that it was whole, the plugin is at fault, not the connection.
func (x *Exchange) failCut() {
	if x.at.ended && x.at.target.link.plugin {
		x.failBroken(&adapter.Broken{Err: errNoFinish})
		return
	}
	x.fail(fault{transport: failure.EOF})
}

var errNoFinish = errors.New("it said that the answer is whole, and no choice has a finish reason")

// phase is how far the answer of the running attempt has come.
func (x *Exchange) phase() failure.Phase {
	switch c := x.at.call; {
	case x.committed.output():
		return failure.AfterOutput
	case c != nil && c.Status() >= 200 && c.Status() <= 299:
		return failure.BeforeOutput
	default:
		return failure.BeforeHeaders
	}
}

// fail ends the running attempt and finds out what may follow.
func (x *Exchange) fail(f fault) {
	now := x.g.now()
	a := &x.at
	if !x.committed.output() {
		x.out = x.out[:0] // nothing of a failed attempt ever reaches the caller
	}
	status := 0
	if a.call != nil {
		status = a.call.Status()
		f.wire = a.call.Wire()
	}
	l := lastFailure{phase: x.phase(), status: status, transport: f.transport, err: f.err}
	if f.err.Status != 0 && status >= 200 && status <= 299 {
		l.status = f.err.Status // an error inside a 2xx answer that names its own status
	}
	l.deadlineEnded = f.transport == failure.ClockTotal || f.transport == failure.ClockReserve
	verdict := x.classify(now, &f, &l)
	l.class = verdict.Class
	l.mayBeDone = f.wire != failure.NotSent && !l.class.SurelyNotProcessed()
	x.last = l
	x.closeAttempt(now, &f, &verdict)
	if !x.committed.output() {
		x.forgetStream()
		x.guarding.states = x.guarding.states[:0]
	}
	x.afterFailure(now, &f)
}

// forgetStream leaves nothing in the decoder of an answer that the caller never saw: an error
// event after heartbeats must not speak of it.
func (x *Exchange) forgetStream() { x.at.stream.Reset(x.facts.Endpoint, openai.StreamOptions{}) }

// classify asks the policy for the failure's class, unless the core knows that nobody failed.
func (x *Exchange) classify(now time.Time, f *fault, l *lastFailure) policy.Failure {
	if x.sig.over() {
		return policy.Failure{Class: failure.Cancelled, Reason: "cancelled"}
	}
	if f.class == failure.GatewayDenied { // a guard's word: nobody upstream failed
		if l.phase == failure.AfterOutput {
			return policy.Failure{Class: failure.PartialStream, Health: policy.HealthIgnore, Reason: "guard_refused"}
		}
		return policy.Failure{Class: failure.GatewayDenied, Health: policy.HealthIgnore, Reason: "guard_refused"}
	}
	in := policy.FailureInput{
		Failure: policy.FailureFacts{
			AdapterClass: f.class, Transport: f.transport, Status: l.status,
			ProviderCode: policy.NormaliseCode(f.err.Code), ProviderType: policy.NormaliseCode(f.err.Type),
			Phase: l.phase, RequestSent: f.wire != failure.NotSent, RetryAfterPresent: f.hasRetryAfter,
		},
		Channel: x.at.target.link.asPolicy,
		Model:   x.at.target.route.Model,
	}
	in.Detail = x.detail(now, f)
	v, meta := x.policy.Failure(x.g.ctx, &in)
	x.note(policy.PointFailure, x.at.number, v.Class.String(), v.Reason, &meta)
	if x.beside != nil {
		x.gen.trial.Failure(x.beside, x.asker(), &in, v, &meta)
	}
	switch {
	case l.phase == failure.AfterOutput && v.Class != failure.Cancelled:
		v.Class = failure.PartialStream // whatever broke, half an answer is downstream
	case v.Class == failure.Refusal, v.Class == failure.Cancelled && f.transport != failure.Aborted:
		v.Class = failure.Unknown // no answer was delivered and nobody has left, whatever a policy says
	}
	if l.deadlineEnded && x.at.byLimit {
		v.Health, v.Isolate = policy.HealthIgnore, false // the caller's own clock
	}
	return v
}

// afterFailure decides what follows the attempt that has just been closed.
func (x *Exchange) afterFailure(now time.Time, f *fault) {
	x.stage = choosing
	if x.sig.over() {
		x.halt()
		return
	}
	x.refresh(now)
	x.preferFree()
	rf := recovery.Failure{Class: x.last.class, Phase: x.last.phase}
	if f.hasRetryAfter {
		rf.RetryAfter = f.retryAfter
	}
	x.decide(now, rf, f.wire != failure.NotSent)
}

// decide asks the policy what may follow and holds the answer against the interlocks.
func (x *Exchange) decide(now time.Time, f recovery.Failure, sent bool) {
	if x.committed.output() { // interlock 2 leaves nothing to choose
		x.ask, x.decided = policy.Replay{}, true
		x.step = recovery.Step{Interlock: recovery.Committed}
		return
	}
	x.approve(now, f.Class)
	options := x.m.Open(now, x.cands)
	in := x.replayInput(f, sent, &options)
	in.Detail = x.detail(now, &fault{retryAfter: f.RetryAfter})
	var meta policy.Meta
	x.ask, meta = x.policy.Replay(x.g.ctx, &in)
	x.decided = true
	x.step = x.m.Decide(now, x.cands, x.verdict(), rand.Float64())
	x.why = x.ask.Reason
	x.note(policy.PointReplay, x.m.Made(), x.verdictWord(), x.ask.Reason, &meta)
	if x.beside != nil {
		x.gen.trial.Replay(x.beside, x.asker(), &in, x.ask, &meta)
	}
	x.overruled()
	x.ranOut = !x.step.Go && x.wouldHave(in)
	if x.ranOut && x.m.ActionSpent() {
		x.actionSpent = x.wantsAttempts(now, f, sent)
	}
}

// wantsAttempts reports whether the user action's attempts are what stopped the request, rather
// than its routes or its time: with more of them it would have gone on.
func (x *Exchange) wantsAttempts(now time.Time, f recovery.Failure, sent bool) bool {
	m := x.m.Unlimited()
	options := m.Open(now, x.cands)
	in := x.replayInput(f, sent, &options)
	ask, _ := x.policy.Replay(x.g.ctx, &in)
	return m.Decide(now, x.cands, recovery.Verdict{Actions: ask.Actions, Delay: ask.Delay}, 0).Go
}

func (x *Exchange) verdictWord() string {
	if len(x.ask.Actions) == 0 {
		return failure.Stop.String()
	}
	return x.ask.Actions[0].String()
}

// wouldHave reports whether the policy stopped only for want of routes, attempts or time: it
// is asked the same with all of them there.
func (x *Exchange) wouldHave(in policy.ReplayInput) bool {
	if x.ask.RanOut() {
		return true
	}
	for _, a := range x.ask.Actions {
		if a != failure.Stop {
			return true // it wanted more than the interlocks leave
		}
	}
	in.Attempt = policy.Attempt{Number: 1, SameRoute: 1, SameGroup: 1}
	in.Budget = policy.Budget{AttemptsLeft: 5, TimeLeft: policy.AmpleTime, RetryAfterFits: true}
	in.Candidates = policy.Candidates{SameRoute: 1, SameContract: 3, SameContractSchemaVerified: 3, Substitutes: 3}
	all, _ := x.policy.Replay(x.g.ctx, &in)
	return len(all.Actions) > 0 && all.Actions[0] != failure.Stop
}

func (x *Exchange) replayInput(f recovery.Failure, sent bool, o *recovery.Options) policy.ReplayInput {
	in := policy.ReplayInput{
		Failure: policy.Failed{Class: f.Class, Phase: f.Phase, RequestSent: sent},
		Request: policy.ReplayRequest{
			Endpoint: x.asked.Endpoint, Kind: x.kind, Alias: x.asked.Alias, SideEffects: x.asked.SideEffects,
			StructuredOutput: x.asked.StructuredOutput, Idempotent: x.idempotent, Stream: x.facts.Stream,
			Release: policy.ReleaseStream,
		},
		Labels: x.caller.labels,
		Attempt: policy.Attempt{
			Number: x.m.Made(), Cause: x.at.cause,
		},
		Budget: policy.Budget{
			AttemptsLeft: min(o.AttemptsLeft, 5), TimeLeft: policy.QuantiseTimeLeft(o.TimeLeft),
			RetryAfter:     policy.QuantiseRetryAfter(f.RetryAfter, f.RetryAfter > 0),
			RetryAfterFits: o.RetryAfterFits,
		},
		Candidates: policy.Candidates{
			SameRoute: o.SameRoute, SameContract: min(o.SameContract, 3),
			SameContractSchemaVerified: min(o.SameContractVerified, 3), Substitutes: min(o.Substitutes, 3),
		},
	}
	if x.m.Made() > 0 {
		t := x.at.target
		in.Attempt.SameRoute = x.m.OnRoute(uint16(x.at.candidate))
		in.Attempt.SameGroup = x.m.OnGroup(uint16(t.link.group))
	}
	if x.buffered {
		in.Request.Release = policy.ReleaseBuffered
	}
	return in
}

// detail gives the free numbers to a policy that reads them.
func (x *Exchange) detail(now time.Time, f *fault) *policy.Detail {
	d := &x.detailed
	*d = policy.Detail{
		Now: now, Elapsed: now.Sub(x.rec.ReceivedAt), TimeLeft: -1, RetryAfter: -1,
		BodyBytes: int64(len(x.in)), MaxOutputTokens: -1,
	}
	if end := x.m.Deadline(); !end.IsZero() {
		d.TimeLeft = max(0, end.Sub(now))
	}
	if f != nil && f.retryAfter > 0 {
		d.RetryAfter = f.retryAfter
	}
	if n := x.facts.MaxOutputTokens; n > 0 {
		d.MaxOutputTokens = n
	}
	return d
}

// note keeps a decision for the ledger and counts it.
func (x *Exchange) note(p policy.Point, attempt int, verdict, reason string, m *policy.Meta) {
	x.g.metrics.CountDecision(p.String(), verdict, reason, m.Took)
	x.rec.Decisions = append(x.rec.Decisions, ledger.Decision{
		Attempt: attempt, Point: p.String(), Input: m.Record.Input, Output: m.Record.Output, Revision: m.Record.Revision,
	})
	if log := x.gen.decisionLog; log != nil {
		log.Add(decisionlog.Event{
			At: x.g.now(), RequestID: x.id, Ordinal: len(x.rec.Decisions), Attempt: attempt, Key: x.caller.key.Name,
			Record: m.Record, Took: m.Took, Cached: m.Cached, Err: m.Err,
		})
	}
	if m.Err != nil {
		x.g.log.Warn("policy decision failed closed", "request_id", x.id, "point", p.String(), "error", m.Err.Error())
	}
}

// approve asks the policy about every substitute that could be reached now.
func (x *Exchange) approve(now time.Time, class failure.Class) {
	if x.alias == nil || x.m.SubstitutionDenied() {
		return
	}
	asked, said := 0, policy.Substitution{} // of the latest substitute: its channels share one answer
	for i := range x.targets {
		t, c := &x.targets[i], &x.cands[i]
		if t.substitute == 0 {
			continue
		}
		s := &c.Substitute
		s.Approved, s.Refused = false, false
		if !s.Listed || !s.Meets || !s.Priced || !s.AboveGate || c.State == recovery.Unusable {
			continue
		}
		if class == failure.ContextOverflow && x.alias.substitutes[t.substitute-1].offer.ContextWindow != policy.LargerWindow {
			s.Refused = true // another window of the same size overflows too
			continue
		}
		if asked != t.substitute {
			asked, said = t.substitute, x.askSubstitution(now, t, class)
		}
		s.Approved, s.Refused = said.Approve, !said.Approve
		if t.disclosure = headerSafe(said.Disclosure); t.disclosure == "" {
			t.disclosure = class.String()
		}
	}
}

// askSubstitution asks the policy about one substitute.
func (x *Exchange) askSubstitution(now time.Time, t *target, class failure.Class) policy.Substitution {
	in := x.substitutionInput(now, t, class)
	v, meta := x.policy.Substitution(x.g.ctx, in)
	verdict := "deny"
	if v.Approve {
		verdict = "approve"
	}
	x.note(policy.PointSubstitution, x.m.Made(), verdict, v.Reason, &meta)
	if x.beside != nil {
		x.gen.trial.Substitution(x.beside, x.asker(), in, v, &meta)
	}
	return v
}

func (x *Exchange) substitutionInput(now time.Time, t *target, class failure.Class) *policy.SubstitutionInput {
	in := &policy.SubstitutionInput{
		Request: x.asked, Labels: x.caller.labels, Alias: x.alias.asPolicy, Requested: x.alias.requested,
		Candidate: x.alias.substitutes[t.substitute-1].offer, Substitution: x.substitution, Class: class,
	}
	in.Detail = x.detail(now, nil)
	return in
}

// headerSafe makes a policy's word fit for a header.
func headerSafe(s string) string {
	if len(s) > 128 {
		s = s[:128]
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return ""
		}
	}
	return s
}
