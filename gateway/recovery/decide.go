package recovery

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

const noDeadline = 24 * time.Hour

// Open says what the interlocks leave after the attempt that Close ended, or before the
// first one where no route of the requested model can be used.
func (m *Machine) Open(now time.Time, cands []Candidate) Options {
	m.othersLeft = m.others(cands)
	o := Options{AttemptsLeft: m.attemptsLeft(), TimeLeft: noDeadline}
	if d := m.limits.Deadline; !d.IsZero() {
		o.TimeLeft = max(0, d.Sub(now))
	}
	for i := range cands {
		c := &cands[i]
		if m.latest(c.Route) {
			if m.opens(failure.SameRouteRetry, c, now) {
				o.SameRoute = 1
			}
			o.RetryAfterFits = m.fits(now)
			continue
		}
		if m.onRoute(c.Route) > 0 {
			continue
		}
		switch {
		case c.Model == 0:
			if m.opens(failure.SameContractFallback, c, now) {
				o.SameContract++
				if c.Verified {
					o.SameContractVerified++
				}
			}
		case m.opens(failure.ModelSubstitution, c, now):
			o.Substitutes++
		}
	}
	return o
}

// Decide holds the policy's verdict against the interlocks: the first action in it that
// they leave open happens; if there is none it is a stop. jitter is uniform in [0, 1).
//
// A verdict whose action has no candidate left is not a breach, only not possible: the next
// action is looked at. A broken interlock that is about the whole request ends it there.
func (m *Machine) Decide(now time.Time, cands []Candidate, v Verdict, jitter float64) Step {
	m.othersLeft = m.others(cands)
	var step Step
	for _, a := range v.Actions {
		if a == failure.Stop {
			break
		}
		s := m.act(a, now, cands, v.Delay, jitter)
		if step.Overruled == NoInterlock {
			step.Overruled = s.Overruled
		}
		if s.Go {
			s.Overruled = step.Overruled
			return s
		}
		if s.Overruled != NoInterlock {
			step.Interlock = step.Overruled
		}
		if s.Overruled.whole() {
			break
		}
	}
	return step
}

// act finds the best candidate for one action.
func (m *Machine) act(a failure.Action, now time.Time, cands []Candidate, policy time.Duration, jitter float64) Step {
	best, first := Step{}, NoInterlock
	tried := -1
	for i := range cands {
		c := &cands[i]
		if !m.concerns(a, c) {
			continue
		}
		delay := m.delay(now, a, c, policy, jitter)
		p := proposal{cause: a.Cause(), to: c, now: now, at: now.Add(delay), delay: delay}
		if b := m.broken(&p); b != NoInterlock {
			if first == NoInterlock {
				first = b
			}
			if b.whole() {
				break
			}
			continue
		}
		if n := m.onRoute(c.Route); tried < 0 || n < tried {
			tried = n
			best = Step{Go: true, Cause: a.Cause(), Candidate: i, Delay: delay}
			if delay > 0 {
				best.NotBefore = p.at
			}
		}
	}
	if !best.Go {
		best.Overruled = first
	}
	return best
}

// concerns reports whether the action could mean this candidate at all; the interlocks
// decide whether it may.
func (m *Machine) concerns(a failure.Action, c *Candidate) bool {
	switch a {
	case failure.RetrySameRoute:
		return m.latest(c.Route)
	case failure.FallBackSameContract:
		return !m.latest(c.Route) && c.Model == 0
	case failure.SubstituteModel:
		return !m.latest(c.Route) && c.Model != 0
	default:
		return false
	}
}

// delay is how long to wait before asking c: nothing for a route not asked before, the
// backoff and whatever the provider demanded for one that was.
func (m *Machine) delay(now time.Time, a failure.Action, c *Candidate, policy time.Duration, jitter float64) time.Duration {
	d := max(0, policy)
	if n := m.onRoute(c.Route); n > 0 {
		d = max(d, m.limits.Backoff.Wait(n, jitter))
	}
	if a == failure.RetrySameRoute {
		if c.State == Cooling {
			d = max(d, c.Until.Sub(now))
		}
		if !m.notBefore.IsZero() {
			d = max(d, m.notBefore.Sub(now))
		}
	}
	return d
}

// opens reports whether the interlocks leave the action on c open, at the earliest moment.
func (m *Machine) opens(cause failure.Cause, c *Candidate, now time.Time) bool {
	delay := m.delay(now, failure.Action(cause), c, 0, 0)
	p := proposal{cause: cause, to: c, now: now, at: now.Add(delay), delay: delay}
	return m.broken(&p) == NoInterlock
}

// fits reports whether the provider's Retry-After leaves a useful attempt before the
// deadline. Without a Retry-After it fits.
func (m *Machine) fits(now time.Time) bool {
	wait := m.notBefore.Sub(now)
	if m.notBefore.IsZero() || wait <= 0 {
		return true
	}
	if wait > m.limits.Backoff.MaxWait {
		return false
	}
	if m.limits.Deadline.IsZero() {
		return true
	}
	end := m.limits.Deadline
	if m.othersLeft {
		end = end.Add(-m.reserve())
	}
	return !m.notBefore.Add(m.limits.MinUseful).After(end)
}

func (m *Machine) attemptsLeft() int {
	left := m.limits.MaxAttempts - m.made
	if m.limits.UserAction.Counted {
		left = min(left, m.limits.UserAction.Left-m.made)
	}
	return max(0, left)
}
