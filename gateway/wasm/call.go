package wasm

import (
	"errors"
	"fmt"
	"time"
)

// Measure is what one call took.
type Measure struct {
	Units  int64 // of work
	Budget int64 // how many it was allowed
	Took   time.Duration
	Memory int64 // bytes of the instance's memory afterwards
}

// Call runs one operation on a guest: in is its input as the ABI has it, and the result is
// appended to dst. wait bounds the wait for an instance; the call itself is bounded by its
// budget and, behind that, by the wall clock. Neither in nor dst is kept.
//
// The error is a *GuestError, with which the guest answered, or a *Failure. dst is returned as
// it was with either.
func (p *Plugin) Call(wait Wait, op Op, in, dst []byte) ([]byte, error) {
	out, _, err := p.CallMeasured(wait, op, in, dst)
	return out, err
}

// CallMeasured is Call, and says what the call took. The measure is that of the call alone,
// without the wait; it is zero where no guest was called.
func (p *Plugin) CallMeasured(wait Wait, op Op, in, dst []byte) ([]byte, Measure, error) {
	if int64(len(in)) > p.limits.Memory/2 {
		return dst, Measure{}, p.pool.fail(TooLarge, fmt.Errorf("%d bytes for a guest of %d", len(in), p.limits.Memory))
	}
	urgent := op.urgent()
	i, err := p.pool.acquire(urgent, wait)
	if err != nil {
		return dst, Measure{}, err
	}
	allowance := p.limits.allowance(len(in))
	m := Measure{Budget: units(allowance)}
	began := nanotime()
	out, err := i.do(op, in, dst, m.Budget, wallFactor*allowance)
	m.Took = time.Duration(nanotime() - began)
	m.Units, m.Memory = i.used, int64(i.memory.Size())
	p.metrics.CountPluginCall(p.name, op.String(), m.Took)
	p.pool.give(i, urgent, p.judge(op, err))
	return out, m, err
}

// judge says what a call's end means for the instance.
func (p *Plugin) judge(op Op, err error) outcome {
	if err == nil {
		return worked
	}
	var failure *Failure
	if !errors.As(err, &failure) {
		return worked // an answer of the guest's, be it an error
	}
	p.metrics.CountPluginTrap()
	if failure.Reason == Oversized || failure.Reason == Malformed {
		p.Refused(failure.Reason.String())
	}
	p.log.Warn("plugin failed", "plugin", p.name, "function", op.String(), "reason", failure.Reason.String(), "error", failure.Detail())
	return broken
}

// Refused counts a result that the caller does not take, though it came back as the ABI has it.
// What was wrong with it is one of a few words.
func (p *Plugin) Refused(reason string) { p.metrics.CountPluginRefused(p.name, reason) }
