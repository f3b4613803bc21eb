package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Settings say when circuits open and how they close.
type Settings struct {
	Window              time.Duration // over which outcomes are counted
	MinRequests         int           // fewer in the window say nothing about the ratio
	FailureRatio        float64       // the share of failures that opens; 0 = this rule is off
	ConsecutiveFailures int           // in a row; 0 = this rule is off
	OpenFor             time.Duration // exact; doubles with each failed probe
	MaxOpen             time.Duration // the longest it doubles to
	HalfOpenProbes      int           // at the same time; that many successes close
	Ramp                time.Duration // over which a closed circuit gets its share back
}

// Verdict is what an attempt's end says of a circuit.
type Verdict uint8

// The verdicts.
const (
	Neutral Verdict = iota // nothing: a probe's permit is free again
	Good
	Bad
)

// Pass is the leave of a circuit to make one attempt.
type Pass struct {
	word  uint64
	probe bool
}

// Probe reports whether the attempt is a probe of a half-open circuit.
func (p Pass) Probe() bool { return p.probe }

// Change tells that a circuit has changed its state.
type Change struct {
	Key      Key
	From, To State
	At       time.Time
	OpenFor  time.Duration // with To Open
	// Again: it opened twice within an hour.
	Again bool
	// Reset: an operator closed it.
	Reset bool
}

// again is how close two openings must be to be worth an investigation.
const again = time.Hour

// Circuit is one circuit. All methods may be called from any goroutine; they take its lock
// only where it is not closed, or a failure is counted.
type Circuit struct {
	key      Key
	registry *Registry

	// word is an epoch, raised at each change of state, and the state: what an attempt saw when
	// it began. Outcomes of attempts from an earlier epoch say nothing about this one.
	word   atomic.Uint64
	until  atomic.Int64 // instant: open until then
	row    atomic.Int32 // failures in a row
	counts counts

	closed atomic.Int64 // instant: when probes closed it, for the ramp; 0 = no ramp
	credit atomic.Int64 // of the ramp

	mu      sync.Mutex
	probes  int           // that are out
	good    int           // probes that succeeded since it is half-open
	openFor time.Duration // the latest
	opened  instant       // the latest; 0 = never
}

const stateBits = 2

func stateOf(word uint64) State { return State(word & (1<<stateBits - 1)) }

// Key returns what the circuit stands for.
func (c *Circuit) Key() Key { return c.key }

// State returns the state at a time, and for an open circuit when it will let a probe
// through. An open circuit whose time has come is half-open.
func (c *Circuit) State(now time.Time) (s State, until time.Time) {
	switch s = stateOf(c.word.Load()); s {
	case Closed:
	case Open:
		if u := instant(c.until.Load()); at(now) < u {
			return Open, u.time(now)
		}
		return HalfOpen, time.Time{}
	}
	return s, time.Time{}
}

// Room says what Enter would, and takes nothing: Closed and HalfOpen are leave to enter.
func (c *Circuit) Room(now time.Time) (s State, until time.Time) {
	if stateOf(c.word.Load()) == Closed {
		return Closed, time.Time{}
	}
	if s, until = c.State(now); s != HalfOpen {
		return s, until
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if stateOf(c.word.Load()) == HalfOpen && !c.probeLeft() {
		return Open, time.Time{}
	}
	return HalfOpen, time.Time{}
}

// probeLeft reports whether a half-open circuit allows one more probe.
func (c *Circuit) probeLeft() bool {
	return c.probes+c.good < max(c.registry.Settings().HalfOpenProbes, 1)
}

// Enter gives leave to make one attempt: always when closed; of a half-open circuit to as
// many probes as are allowed at once. Every leave ends with Report.
func (c *Circuit) Enter(now time.Time) (Pass, bool) {
	if w := c.word.Load(); stateOf(w) == Closed {
		return Pass{word: w}, true
	}
	return c.enterSick(now)
}

func (c *Circuit) enterSick(now time.Time) (Pass, bool) {
	var done []Change
	c.mu.Lock()
	defer func() {
		c.mu.Unlock()
		c.registry.tell(done)
	}()
	w := c.word.Load()
	switch stateOf(w) {
	case Closed:
		return Pass{word: w}, true
	case Open:
		if at(now) < instant(c.until.Load()) {
			return Pass{}, false
		}
		c.probes, c.good = 0, 0
		done = append(done, c.become(HalfOpen, now))
	}
	if !c.probeLeft() {
		return Pass{}, false
	}
	c.probes++
	return Pass{word: c.word.Load(), probe: true}, true
}

// Report ends an attempt that Enter gave leave to.
func (c *Circuit) Report(p Pass, now time.Time, v Verdict) {
	if v == Neutral && !p.probe || c.word.Load() != p.word {
		return // nothing to say, or it began before the circuit changed
	}
	if v == Good && !p.probe {
		if c.row.Load() != 0 {
			c.row.Store(0)
		}
		c.counts.add(at(now), c.registry.Settings().Window, false)
		return
	}
	var done []Change
	c.mu.Lock()
	if c.word.Load() == p.word {
		if p.probe {
			done = c.probed(now, v, done)
		} else {
			done = c.failed(now, done)
		}
	}
	c.mu.Unlock()
	c.registry.tell(done)
}

// probed ends a probe.
func (c *Circuit) probed(now time.Time, v Verdict, done []Change) []Change {
	c.probes--
	switch v {
	case Good:
		if c.good++; c.good >= c.registry.Settings().HalfOpenProbes {
			return append(done, c.close(now))
		}
	case Bad:
		s := c.registry.Settings()
		return append(done, c.open(now, max(s.OpenFor, min(2*c.openFor, s.MaxOpen))))
	}
	return done
}

// failed counts a failure of a closed circuit.
func (c *Circuit) failed(now time.Time, done []Change) []Change {
	s := c.registry.Settings()
	t := at(now)
	c.counts.add(t, s.Window, true)
	row := c.row.Add(1)
	trips := s.ConsecutiveFailures > 0 && int(row) >= s.ConsecutiveFailures
	if !trips && s.FailureRatio > 0 {
		good, bad := c.counts.sum(t, s.Window)
		n := good + bad
		trips = n >= s.MinRequests && float64(bad) >= s.FailureRatio*float64(n)
	}
	if trips {
		return append(done, c.open(now, s.OpenFor))
	}
	return done
}

// Reset closes the circuit, forgets what was counted and gives the whole share back at once.
// It reports whether it was not closed.
func (c *Circuit) Reset(now time.Time) bool {
	c.mu.Lock()
	if stateOf(c.word.Load()) == Closed {
		c.row.Store(0)
		c.counts.clear()
		c.closed.Store(0)
		c.mu.Unlock()
		return false
	}
	change := c.close(now)
	c.closed.Store(0)
	c.mu.Unlock()
	change.Reset = true
	c.registry.tell([]Change{change})
	return true
}

func (c *Circuit) open(now time.Time, d time.Duration) Change {
	t := at(now)
	twice := c.opened != 0 && t-c.opened <= instant(again)
	c.opened, c.openFor = t, d
	c.until.Store(int64(t.add(d)))
	change := c.become(Open, now)
	change.OpenFor, change.Again = d, twice
	return change
}

func (c *Circuit) close(now time.Time) Change {
	c.row.Store(0)
	c.counts.clear()
	c.openFor = 0
	c.credit.Store(rampFloor * rampUnit)
	c.closed.Store(int64(at(now)))
	c.registry.ramps(now)
	return c.become(Closed, now)
}

func (c *Circuit) become(s State, now time.Time) Change {
	w := c.word.Load()
	c.word.Store((w>>stateBits+1)<<stateBits | uint64(s))
	return Change{Key: c.key, From: stateOf(w), To: s, At: now}
}
