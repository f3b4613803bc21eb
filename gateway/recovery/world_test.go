package recovery

import (
	"fmt"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// source gives the world its choices: rapid in the property test, a seeded generator in the
// mutants' test.
type source interface{ Intn(n int) int }

func chance(s source, percent int) bool { return s.Intn(100) < percent }

func pick[T any](s source, of ...T) T { return of[s.Intn(len(of))] }

// world drives one Machine the way a hostile day would: random limits, candidates that
// change under its feet, policies that ask for anything, callers that leave, records that do
// not open, attempts that are never closed. After each thing the machine let happen it holds
// the facts against what the ten interlocks promise, in words of its own.
type world struct {
	src    source
	m      Machine
	limits Limits
	now    time.Time
	cands  []Candidate

	// what really happened
	made            int
	byRoute         map[uint16]int
	byGroup         map[uint16]int
	route           uint16
	open            bool
	cancelled       bool
	committed       bool
	denied          bool
	sideEffect      bool
	off             Causes
	notBefore       time.Time
	othersAtDecide  bool
	reserve         time.Duration
	starts, refused int
}

func newWorld(src source, r *rules) *world {
	w := &world{src: src, now: time.Unix(1_000_000, 0), byRoute: map[uint16]int{}, byGroup: map[uint16]int{}}
	ms := func(of ...int) time.Duration { return time.Duration(pick(src, of...)) * time.Millisecond }
	w.limits = Limits{
		MaxAttempts: pick(src, 0, 1, 2, 3, 4, 5, 6), MaxPerRoute: 1 + src.Intn(3), MaxPerGroup: 1 + src.Intn(4),
		Reserve: ms(0, 100, 2000, 5000), MinUseful: ms(0, 500, 1500),
		Backoff:            Backoff{Base: ms(0, 50, 200), Max: ms(200, 2000), MaxWait: ms(300, 20_000)},
		SubstitutionDenied: chance(src, 20),
	}
	if chance(src, 80) {
		w.limits.Deadline = w.now.Add(ms(300, 3000, 10_000, 60_000))
	}
	if chance(src, 40) {
		w.limits.UserAction.Counted, w.limits.UserAction.Left = true, src.Intn(5)
	}
	w.reserve = w.limits.Reserve
	if w.reserve < w.limits.MinUseful {
		w.reserve = 0
	}
	for i := range 1 + src.Intn(6) {
		w.cands = append(w.cands, Candidate{
			Route: uint16(i), Group: uint16(src.Intn(3)), Model: uint16(pick(src, 0, 0, 0, 1, 2)),
			Mapped: chance(src, 8), OffContract: chance(src, 8), Verified: chance(src, 50),
			Substitute: Substitute{
				Listed: chance(src, 85), Meets: chance(src, 85), Priced: chance(src, 85),
				AboveGate: chance(src, 85), Approved: chance(src, 80), Refused: chance(src, 20), Discloses: chance(src, 90),
			},
		})
	}
	w.m.Reset(w.limits)
	w.m.rules = r
	return w
}

// weather changes what the machine cannot know between two calls.
func (w *world) weather() {
	s := w.src
	for i := range w.cands {
		c := &w.cands[i]
		c.State = pick(s, Ready, Ready, Ready, Ready, Ready, Ready, HalfOpen, HalfOpen, Cooling, Unusable)
		c.Until = w.now.Add(time.Duration(s.Intn(3000)) * time.Millisecond)
		c.Off = 0
		if chance(s, 5) {
			c.Off = c.Off.With(pick(s, failure.SameRouteRetry, failure.SameContractFallback, failure.ModelSubstitution))
		}
	}
	if chance(s, 3) {
		w.off = w.off.With(pick(s, failure.SameRouteRetry, failure.SameContractFallback, failure.ModelSubstitution))
		w.m.SwitchOff(w.off)
	}
	if chance(s, 2) {
		w.cancelled = true
		w.m.Cancel()
	}
	if chance(s, 3) {
		w.sideEffect = !w.sideEffect
		w.m.SideEffect(w.sideEffect)
	}
}

func (w *world) verdict() Verdict {
	v := Verdict{Delay: time.Duration(w.src.Intn(500)-100) * time.Millisecond}
	for range w.src.Intn(6) {
		v.Actions = append(v.Actions, failure.Action(pick(w.src, 1, 2, 3, 1, 2, 3, 1, 2, 3, 0, 200)))
	}
	return v
}

// run lives one request and returns the first broken promise.
func (w *world) run() error {
	for step := range 30 {
		w.weather()
		var s Step
		if w.made == 0 && (step == 0 || chance(w.src, 70)) {
			s = w.m.First(w.now, w.cands)
		} else {
			w.othersAtDecide = w.others()
			w.m.Open(w.now, w.cands)
			s = w.m.Decide(w.now, w.cands, w.verdict(), float64(w.src.Intn(1000))/1000)
		}
		if err := w.check(s); err != nil {
			return err
		}
		if !s.Go {
			if chance(w.src, 10) {
				return nil
			}
			continue
		}
		w.now = w.now.Add(s.Delay)
		if chance(w.src, 20) {
			w.now = w.now.Add(time.Duration(w.src.Intn(4000)) * time.Millisecond)
		}
		if chance(w.src, 10) && s.Delay > 0 { // somebody does not wait
			w.now = w.now.Add(-s.Delay)
		}
		if chance(w.src, 30) {
			w.weather()
		}
		if err := w.start(s); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) start(s Step) error {
	c := w.cands[s.Candidate]
	c.Recorded, c.Permit = chance(w.src, 90), chance(w.src, 60)
	if b := w.m.Start(w.now, s.Cause, &c); b != NoInterlock {
		w.refused++
		return nil
	}
	w.starts++
	if err := w.judge(s.Cause, &c); err != nil {
		return fmt.Errorf("attempt %d (%v, route %d): %w", w.made+1, s.Cause, c.Route, err)
	}
	w.made++
	w.byRoute[c.Route]++
	w.byGroup[c.Group]++
	w.route, w.open, w.notBefore = c.Route, true, time.Time{}
	w.now = w.now.Add(time.Duration(w.src.Intn(2000)) * time.Millisecond)
	if chance(w.src, 2) {
		return nil // never closed: nothing may follow
	}
	return w.close()
}

func (w *world) close() error {
	f := Failure{
		Class: pick(w.src, append(failure.Classes(), failure.ServerError, failure.RateLimited)...),
		Phase: pick(w.src, failure.BeforeHeaders, failure.BeforeOutput),
	}
	if chance(w.src, 30) {
		f.RetryAfter = time.Duration(w.src.Intn(5000)) * time.Millisecond
	}
	if chance(w.src, 10) {
		f.Phase, w.committed = failure.AfterOutput, true
		w.m.Commit()
	}
	w.denied = f.Class == failure.GatewayDenied
	w.cancelled = w.cancelled || f.Class == failure.Cancelled
	if f.RetryAfter > 0 {
		w.notBefore = w.now.Add(f.RetryAfter)
	}
	if !w.m.Close(w.now, f) {
		return fmt.Errorf("an open attempt could not be closed")
	}
	w.open = false
	if w.m.Close(w.now, f) {
		return fmt.Errorf("an attempt was closed twice")
	}
	return nil
}

// check holds a step against what it may promise before the attempt starts.
func (w *world) check(s Step) error {
	if !s.Go {
		return nil
	}
	if s.Candidate < 0 || s.Candidate >= len(w.cands) {
		return fmt.Errorf("step to candidate %d of %d", s.Candidate, len(w.cands))
	}
	if s.Delay < 0 || w.made > 0 && s.Delay > w.limits.Backoff.MaxWait {
		return fmt.Errorf("delay %v outside 0…%v", s.Delay, w.limits.Backoff.MaxWait)
	}
	if w.cancelled || w.committed || w.denied || w.sideEffect || w.open {
		return fmt.Errorf("a step after cancelled=%v committed=%v denied=%v sideEffect=%v open=%v",
			w.cancelled, w.committed, w.denied, w.sideEffect, w.open)
	}
	return nil
}

// judge is the oracle: the ten promises at the moment an attempt has been let through.
func (w *world) judge(cause failure.Cause, c *Candidate) error {
	l := &w.limits
	again := w.made > 0 && c.Route == w.route
	switch {
	case w.cancelled:
		return fmt.Errorf("cancelled: the caller has gone")
	case w.committed:
		return fmt.Errorf("committed: output is downstream")
	case w.made >= l.MaxAttempts, l.UserAction.Counted && w.made >= l.UserAction.Left,
		w.byRoute[c.Route] >= l.MaxPerRoute, w.byGroup[c.Group] >= l.MaxPerGroup:
		return fmt.Errorf("budget: one attempt too many")
	case w.made > 0 && !l.Deadline.IsZero() && w.now.Add(l.MinUseful).After(l.Deadline):
		return fmt.Errorf("budget: less than the minimum useful time left")
	case cause == failure.SameRouteRetry && w.othersAtDecide && !l.Deadline.IsZero() &&
		w.now.Add(l.MinUseful+w.reserve).After(l.Deadline):
		return fmt.Errorf("budget: a same-route retry eats the reserve")
	case again && w.now.Before(w.notBefore):
		return fmt.Errorf("retry_after: %v too early", w.notBefore.Sub(w.now))
	case w.denied:
		return fmt.Errorf("denial: a gateway denial was overruled")
	case w.sideEffect:
		return fmt.Errorf("side_effect: a tool execution has no known end")
	case c.State == Unusable || c.State == Cooling || cause != failure.Initial && (w.off|c.Off).Has(cause):
		return fmt.Errorf("switched_off: state %d, off %b", c.State, w.off|c.Off)
	case c.State == HalfOpen && (cause == failure.SameRouteRetry || !c.Permit):
		return fmt.Errorf("switched_off: half-open without a probe permit")
	case !c.Recorded || w.open:
		return fmt.Errorf("evidence: recorded=%v, attempt before it open=%v", c.Recorded, w.open)
	}
	return w.judgeTarget(cause, c, again)
}

func (w *world) judgeTarget(cause failure.Cause, c *Candidate, again bool) error {
	switch cause {
	case failure.Initial:
		if w.made > 0 || c.Model != 0 || c.Mapped || c.OffContract {
			return fmt.Errorf("contract: initial attempt %d off contract", w.made+1)
		}
	case failure.SameRouteRetry:
		if !again {
			return fmt.Errorf("contract: a same-route retry on another route")
		}
	case failure.SameContractFallback:
		if again || c.Model != 0 || c.Mapped || c.OffContract {
			return fmt.Errorf("contract: fallback off contract")
		}
	case failure.ModelSubstitution:
		if c.Model == 0 {
			return fmt.Errorf("substitution: of a model by itself")
		}
	}
	if c.Model == 0 {
		return nil
	}
	s := c.Substitute
	if w.limits.SubstitutionDenied || !s.Listed || !s.Meets || !s.Priced || !s.AboveGate || !s.Approved || !s.Discloses {
		return fmt.Errorf("substitution: %+v, denied by the caller: %v", s, w.limits.SubstitutionDenied)
	}
	return nil
}

// others says in its own words whether somebody untried is left to keep the reserve for.
func (w *world) others() bool {
	for _, c := range w.cands {
		s := c.Substitute
		fit := c.Model == 0 && !c.Mapped && !c.OffContract || c.Model != 0 && !w.limits.SubstitutionDenied &&
			s.Listed && s.Meets && s.Priced && s.AboveGate && !s.Refused && s.Discloses
		if fit && w.byRoute[c.Route] == 0 && (c.State == Ready || c.State == HalfOpen) &&
			w.byGroup[c.Group] < w.limits.MaxPerGroup {
			return true
		}
	}
	return false
}
