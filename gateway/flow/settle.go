package flow

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// closeAttempt ends the running attempt everywhere that knows of it: the transport, the
// channel's capacity, the route's health, the machine, the ledger, metrics and log. f and v
// are nil after a success.
func (x *Exchange) closeAttempt(now time.Time, f *fault, v *policy.Failure) {
	a := &x.at
	if !a.open {
		return
	}
	a.open = false
	class, phase := failure.None, x.phase()
	if v != nil {
		class = v.Class
	}
	rec := x.rec.Attempt(a.number)
	rec.Class, rec.Phase = class, ledger.Some(phase)
	rec.End = failure.EndOf(class, phase)
	rec.OutputStarted = x.committed.output()
	rec.Cancelled = class == failure.Cancelled
	rec.SkippedEvents = a.skipped
	rec.Closed = ledger.Some(now.Sub(rec.OpenedAt))
	if f != nil {
		rec.ProviderCode = x.providerCode(f)
		if f.hasRetryAfter {
			rec.RetryAfter = ledger.Some(f.retryAfter)
		}
	}
	x.recordTimes(rec)
	x.recordUsage(rec, class, phase, f)
	x.recordToolCalls(class)
	x.report(now, class, f, v)
	x.release()
	x.spent += now.Sub(rec.OpenedAt)

	rf := recovery.Failure{Class: class, Phase: phase}
	if f != nil && f.hasRetryAfter {
		rf.RetryAfter = f.retryAfter
	}
	x.m.Close(now, rf)
	a.target.lastClass = class
	x.g.ledger.CloseAttempt(x.rec, a.number)
	x.tellAttempt(rec, class)
}

func (x *Exchange) providerCode(f *fault) string {
	code := f.err.Code
	if code == "" {
		code = f.err.Type
	}
	return policy.NormaliseCode(code)
}

// release gives back what the attempt held: the connection, the decoder and the capacity.
func (x *Exchange) release() {
	a := &x.at
	x.sig.running(nil)
	if a.call != nil {
		if a.ended {
			a.call.ReleaseEnded()
		} else {
			a.call.Release()
		}
		a.call = nil
	}
	if a.events != nil {
		a.events.Release()
		a.events = nil
	}
	x.leaveGate()
}

func (x *Exchange) recordTimes(rec *ledger.Attempt) {
	c := x.at.call
	if c == nil {
		return
	}
	t := c.Times()
	since := func(at time.Time) ledger.Opt[time.Duration] {
		if at.IsZero() {
			return ledger.Opt[time.Duration]{}
		}
		return ledger.Some(max(0, at.Sub(rec.OpenedAt)))
	}
	rec.Connected, rec.Sent = since(t.Connected), since(t.Sent)
	rec.Headers, rec.LastByte = since(t.Head), since(t.LastByte)
}

// recordUsage takes the provider's own figures, else an estimate that is marked as one, and
// prices them.
func (x *Exchange) recordUsage(rec *ledger.Attempt, class failure.Class, phase failure.Phase, f *fault) {
	a := &x.at
	var u openai.Usage
	reported := false
	switch {
	case a.call == nil || a.call.Status() < 200 || a.call.Status() > 299:
	case a.mode == readStream:
		u, reported = a.stream.Usage()
	case a.mode == readWhole && class == failure.None:
		u, reported = a.answer.Usage()
	}
	if !reported {
		switch {
		case class == failure.None || phase == failure.AfterOutput || a.spoke:
			u = openai.Usage{Input: x.facts.InputTokens, Output: x.estimateOutput()}
			rec.Usage.Estimated = true
		case a.call == nil || a.call.Wire() == failure.NotSent, rec.Status >= 300, class.SurelyNotProcessed():
			rec.Billable, rec.CostUSD = ledger.BillableNo, ledger.Some(0.0)
			return
		default:
			rec.Billable = ledger.BillableUnknown
			return
		}
	}
	rec.Billable = ledger.BillableYes
	rec.Usage.Input, rec.Usage.Output = ledger.Some(u.Input), ledger.Some(u.Output)
	rec.Usage.Cached, rec.Usage.Reasoning = ledger.Some(u.Cached), ledger.Some(u.Reasoning)
	if cost, ok := a.target.offer.cost(u); ok {
		rec.CostUSD = ledger.Some(cost)
		x.g.metrics.CountCost(rec.Model, x.rec.Key, cost)
	}
	m := x.g.metrics
	m.CountTokens(rec.Model, "input", u.Input)
	m.CountTokens(rec.Model, "output", u.Output)
	m.CountTokens(rec.Model, "cached", u.Cached)
	m.CountTokens(rec.Model, "reasoning", u.Reasoning)
}

// estimateOutput is a rough count of the tokens that came back: a quarter of the bytes of
// the answer's events would count their JSON too, so the bytes passed on are divided by more.
func (x *Exchange) estimateOutput() int64 {
	n := x.passed + int64(len(x.out)) + int64(len(x.at.whole))
	if x.at.mode == readStream {
		return (n + 39) / 40
	}
	return (n + 3) / 4
}

// recordToolCalls keeps which tools the answer calls and a hash of each call's arguments.
func (x *Exchange) recordToolCalls(class failure.Class) {
	a := &x.at
	if class != failure.None {
		return
	}
	var calls []openai.ToolCall
	if a.mode == readStream {
		calls = a.stream.ToolCalls()
	} else {
		calls = a.answer.ToolCalls()
	}
	for i := range calls {
		c := &calls[i]
		x.rec.ToolCalls = append(x.rec.ToolCalls, ledger.ToolCall{
			Attempt: a.number, Choice: c.Choice, Index: c.Index,
			CallID: cut(c.ID, 128), Name: cut(c.Name, 128), ArgumentsSHA256: c.Hash(),
		})
	}
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

func (x *Exchange) tellAttempt(rec *ledger.Attempt, class failure.Class) {
	outcome := class.String()
	if class == failure.None {
		outcome = failure.EndSuccess.String()
	}
	x.g.metrics.CountAttempt(telemetry.AttemptCount{
		Group: rec.Group, Channel: rec.Channel, Model: rec.Model, Cause: rec.Cause.String(), Outcome: outcome,
	})
	if class == failure.Cancelled {
		x.g.metrics.UpstreamAborted()
	}
	x.g.log.AttemptClosed(&telemetry.AttemptLine{
		RequestID: x.id, CorrelationID: x.rec.CorrelationID, UserAction: x.rec.UserAction,
		ClientRetry: x.wishes.clientRetry, Attempt: rec.Number, Cause: rec.Cause.String(),
		Group: rec.Group, Channel: rec.Channel, Model: rec.Model, Class: class.String(),
		Phase: rec.Phase.Value.String(), Reason: rec.Reason, Delay: rec.Delay,
		TimeLeft: rec.TimeLeft.Value, Circuit: rec.Circuit,
	})
}

// succeed settles a request that was answered. It runs before the last bytes go out, so that
// a caller who asks for its record right after the answer finds it closed.
func (x *Exchange) succeed() {
	now := x.g.now()
	x.commit()
	x.closeAttempt(now, nil, nil)
	if x.counted {
		x.g.actions.succeeded(x.action)
	}
	x.rec.AnsweredModel = x.at.target.route.Model
	x.rec.Cause = ledger.Some(x.at.cause)
	x.settle(failure.Success, 200)
}

// commit marks that meaningful output goes downstream from now on.
func (x *Exchange) commit() {
	if x.committed.output() {
		return
	}
	x.committed = outputCommitted
	x.m.Commit()
	x.rec.OutputStarted = true
	now := x.g.now()
	x.g.metrics.FirstOutput(now.Sub(x.rec.ReceivedAt))
	if c := x.at.call; c != nil {
		c.SetDeadline(x.longest(), failure.ClockTotal)
		x.setWake()
		if x.gen.stream.drain {
			x.sig.keep()
		}
	}
}

// settle closes the request's record, exactly once.
func (x *Exchange) settle(t failure.Terminal, status int) {
	if x.settled {
		return
	}
	x.settled, x.terminal = true, t
	now := x.g.now()
	r := x.rec
	r.Terminal, r.Status, r.FinishedAt = t, status, now
	r.CancelledAt = x.sig.left()
	overhead := max(0, now.Sub(r.ReceivedAt)-x.spent)
	r.Overhead = ledger.Some(overhead)
	x.g.metrics.CountRequest(telemetry.RequestCount{
		Endpoint: r.Endpoint, Model: x.public, Terminal: t.String(), Cause: r.Cause.Value.String(),
		Attempts: len(r.Attempts), Took: now.Sub(r.ReceivedAt), Overhead: overhead,
	})
	cause := ""
	if r.Cause.Known {
		cause = r.Cause.Value.String()
	}
	x.g.log.RequestEnded(&telemetry.RequestLine{
		RequestID: x.id, CorrelationID: r.CorrelationID, UserAction: r.UserAction,
		ClientRetry: x.wishes.clientRetry, Terminal: t.String(), Attempts: len(r.Attempts),
		Cause: cause, Status: status,
	})
	x.g.ledger.CloseRequest(r)
	x.rec = nil
}

// abandon settles what was never brought to its end: the caller left before the last bytes
// were written, or the front failed.
func (x *Exchange) abandon() {
	if x.settled {
		return
	}
	now := x.g.now()
	x.sig.peerGone(now)
	if x.at.open {
		x.fail(fault{transport: failure.Aborted})
	}
	x.at.permit.Drop(now)
	x.leaveGate()
	x.settle(failure.CallerLeft, statusClientClosed)
}

// statusClientClosed is recorded where the caller left before an answer: nothing is sent.
const statusClientClosed = 499
