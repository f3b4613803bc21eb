package recovery

import (
	"math"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Failure is what the machine must know of an attempt that did not succeed.
type Failure struct {
	Class failure.Class
	Phase failure.Phase
	// RetryAfter is how long the provider asked to be left alone, from the moment it said
	// so; 0 = it did not, and the backoff alone applies.
	RetryAfter time.Duration
	// ReserveEnded says that the attempt was ended to keep time for another route, or by
	// the deadline itself.
	ReserveEnded bool
}

// Verdict is what the policy wants: actions in order of preference.
type Verdict struct {
	Actions []failure.Action
	Delay   time.Duration // at least; the core's backoff and Retry-After apply all the same
}

// Step is what happens next. The zero Step is a stop.
type Step struct {
	Go        bool          // an attempt may start
	Cause     failure.Cause // with Go
	Candidate int           // with Go: index into the candidates that were given
	NotBefore time.Time     // with Go: zero = at once
	Delay     time.Duration // with Go: NotBefore less now
	// Overruled is the first interlock that the verdict would have broken; a stop because
	// of it has Interlock set too.
	Overruled Interlock
	Interlock Interlock
}

// Options says what the interlocks leave open after a failure: the facts that the replay
// policy chooses from. Counts are of eligible candidates.
type Options struct {
	SameRoute            int // 0 or 1
	SameContract         int // untried routes of the same model
	SameContractVerified int // … verified for this request's schema
	Substitutes          int // approved ones, untried
	AttemptsLeft         int
	TimeLeft             time.Duration // until the deadline; a day where there is none
	RetryAfterFits       bool
}

// Machine is the state of one request's recovery. It is driven by one goroutine. Reset
// before first use.
type Machine struct {
	limits Limits
	rules  *rules

	made    int
	byRoute []uint8
	byGroup []uint8

	route, group, model uint16 // of the latest attempt
	open                bool   // an attempt is running
	last                Failure
	notBefore           time.Time // the latest route must rest until then

	cancelled, committed, sideEffect bool
	othersLeft                       bool // an untried equal route or substitute is left
	off                              Causes

	asked proposal  // the one being held against the interlocks: kept here, not made anew
	sure  Candidate // … and its candidate in Check
}

// Reset makes m ready for a request. It keeps its memory.
func (m *Machine) Reset(l Limits) {
	*m = Machine{limits: l, rules: &theInterlocks, byRoute: clear8(m.byRoute), byGroup: clear8(m.byGroup)}
}

func clear8(b []uint8) []uint8 { clear(b); return b[:0] }

// Cancel records that the caller has gone.
func (m *Machine) Cancel() { m.cancelled = true }

// Commit records that meaningful output went downstream.
func (m *Machine) Commit() { m.committed = true }

// SideEffect records whether a tool execution of this user action is started or unknown.
func (m *Machine) SideEffect(unknown bool) { m.sideEffect = unknown }

// SwitchOff names the acts that are switched off now, for this request's alias or for all.
func (m *Machine) SwitchOff(c Causes) { m.off = c }

// Made returns the number of attempts started.
func (m *Machine) Made() int { return m.made }

// OnRoute returns the number of attempts started on a route.
func (m *Machine) OnRoute(route uint16) int { return m.onRoute(route) }

// OnGroup returns the number of attempts started in a group.
func (m *Machine) OnGroup(group uint16) int { return m.onGroup(group) }

// SubstitutionDenied reports whether the caller, or admission, forbade another model.
func (m *Machine) SubstitutionDenied() bool { return m.limits.SubstitutionDenied }

// ActionSpent reports whether the user action has no attempt left.
func (m *Machine) ActionSpent() bool {
	return m.limits.UserAction.Counted && m.made >= m.limits.UserAction.Left
}

// Unlimited returns the machine as it would be with attempts enough, to be asked what they would
// have allowed. No attempt is started with it.
func (m *Machine) Unlimited() *Machine {
	free := *m // what it shares with m is only read
	free.limits.UserAction.Counted, free.limits.MaxAttempts = false, math.MaxInt
	return &free
}

// Check takes the last look without counting: it reports the interlock that an attempt
// begun now would break, given that its record can be opened and a probe permit be had.
func (m *Machine) Check(now time.Time, cause failure.Cause, c *Candidate) Interlock {
	m.sure = *c
	m.sure.Recorded, m.sure.Permit = true, true
	m.asked = proposal{cause: cause, to: &m.sure, now: now, at: now, begin: true}
	return m.broken(&m.asked)
}

// Deadline returns the request's deadline, zero if none.
func (m *Machine) Deadline() time.Time { return m.limits.Deadline }

// latest reports whether route is the one of the latest attempt.
func (m *Machine) latest(route uint16) bool { return m.made > 0 && route == m.route }

func (m *Machine) onRoute(r uint16) int { return at(m.byRoute, r) }
func (m *Machine) onGroup(g uint16) int { return at(m.byGroup, g) }

func at(b []uint8, i uint16) int {
	if int(i) < len(b) {
		return int(b[i])
	}
	return 0
}

func count(b []uint8, i uint16) []uint8 {
	for int(i) >= len(b) {
		b = append(b, 0)
	}
	if b[i] < 255 {
		b[i]++
	}
	return b
}

// First chooses the candidate of the first attempt: the first usable one, in order, that
// serves the requested model.
func (m *Machine) First(now time.Time, cands []Candidate) Step {
	step := Step{}
	for i := range cands {
		m.asked = proposal{cause: failure.Initial, to: &cands[i], now: now, at: now}
		switch b := m.broken(&m.asked); {
		case b == NoInterlock:
			return Step{Go: true, Cause: failure.Initial, Candidate: i}
		case b.whole():
			return Step{Interlock: b}
		}
	}
	return step
}

// Start takes the last look at the moment an attempt begins and, if every interlock holds,
// counts it. The candidate is as it is now, with Recorded and Permit set as they are.
func (m *Machine) Start(now time.Time, cause failure.Cause, c *Candidate) Interlock {
	m.asked = proposal{cause: cause, to: c, now: now, at: now, begin: true}
	if b := m.broken(&m.asked); b != NoInterlock {
		return b
	}
	m.made++
	m.byRoute, m.byGroup = count(m.byRoute, c.Route), count(m.byGroup, c.Group)
	m.route, m.group, m.model = c.Route, c.Group, c.Model
	m.open, m.notBefore = true, time.Time{}
	m.last = Failure{}
	return NoInterlock
}

// Close ends the running attempt with its failure, or with the zero Failure after success.
// It reports false where no attempt was open: a record is closed exactly once.
func (m *Machine) Close(now time.Time, f Failure) bool {
	if !m.open {
		return false
	}
	m.open, m.last = false, f
	if f.Class == failure.Cancelled {
		m.cancelled = true
	}
	if f.RetryAfter > 0 {
		m.notBefore = now.Add(f.RetryAfter)
	}
	return true
}

// AttemptDeadline returns when the running attempt has to end if it has no output by then, and
// whether that is the reserve rather than the deadline itself. The reserve is kept while an
// untried equal route, or a substitute that the policy may still approve, is left.
func (m *Machine) AttemptDeadline(cands []Candidate) (end time.Time, reserve bool) {
	end = m.limits.Deadline
	if end.IsZero() || m.reserve() == 0 || !m.others(cands) {
		return end, false
	}
	if m.made >= m.limits.MaxAttempts || m.limits.UserAction.Counted && m.made >= m.limits.UserAction.Left {
		return end, false // this attempt was the last: nothing to keep time for
	}
	return end.Add(-m.reserve()), true
}

// others reports whether an untried usable equal route, or a substitute that the policy may
// still approve, is left.
func (m *Machine) others(cands []Candidate) bool {
	for i := range cands {
		c := &cands[i]
		if m.onRoute(c.Route) > 0 || c.State != Ready && c.State != HalfOpen {
			continue
		}
		if m.onGroup(c.Group) >= m.limits.MaxPerGroup {
			continue
		}
		if c.Model == 0 && c.equal() {
			return true
		}
		if c.Model != 0 && !m.limits.SubstitutionDenied && c.Substitute.possible() {
			return true
		}
	}
	return false
}
