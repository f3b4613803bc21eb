package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// A dead credential may be tried again after firstProbe, then after twice as long each time.
const (
	firstProbe = 60 * time.Second
	lastProbe  = 30 * time.Minute
)

// Isolated is an isolation that is in force.
type Isolated struct {
	Reason      string
	Fingerprint string // of the credential that is dead
	Since       time.Time
	// Next is when a probe may start.
	Next time.Time
}

// Isolation keeps an account from being used while its credential is dead. The zero value is
// no isolation. All methods may be called from any goroutine; while there is none, asking is
// one atomic read.
type Isolation struct {
	epoch atomic.Uint64 // odd while it is in force

	mu      sync.Mutex
	fact    Isolated // its Next is not set: see next
	next    instant
	wait    time.Duration
	probing bool
}

// Active reports whether the isolation is in force.
func (i *Isolation) Active() bool { return i.epoch.Load()&1 == 1 }

// Fact returns the isolation in force.
func (i *Isolation) Fact(now time.Time) (Isolated, bool) {
	if !i.Active() {
		return Isolated{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.fact
	f.Next = i.next.time(now)
	return f, i.Active()
}

// Isolate puts the isolation in force; false if it is already.
func (i *Isolation) Isolate(reason, fingerprint string, now time.Time) bool {
	return i.Restore(Isolated{Reason: reason, Fingerprint: fingerprint, Since: now}, now)
}

// Restore puts an isolation of an earlier process in force again. It is due for a probe a
// minute after it began.
func (i *Isolation) Restore(f Isolated, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.Active() {
		return false
	}
	i.fact, i.wait, i.probing = f, firstProbe, false
	i.next = at(now).add(firstProbe - min(max(now.Sub(f.Since), 0), firstProbe))
	i.epoch.Add(1)
	return true
}

// End ends the isolation and returns what it was; false if there was none.
func (i *Isolation) End() (Isolated, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.end()
}

func (i *Isolation) end() (Isolated, bool) {
	if !i.Active() {
		return Isolated{}, false
	}
	i.epoch.Add(1)
	return i.fact, true
}

// Room says whether the account may be used: freely (Closed), by one probe (HalfOpen), or not
// (Open), and then until when; zero while a probe is out.
func (i *Isolation) Room(now time.Time) (State, time.Time) {
	if !i.Active() {
		return Closed, time.Time{}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.Active():
		return Closed, time.Time{}
	case i.probing:
		return Open, time.Time{}
	case at(now) < i.next:
		return Open, i.next.time(now)
	default:
		return HalfOpen, time.Time{}
	}
}

// Enter gives leave to make one attempt, as Room says. Every leave ends with Report.
func (i *Isolation) Enter(now time.Time) (Pass, bool) {
	e := i.epoch.Load()
	if e&1 == 0 {
		return Pass{word: e}, true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e = i.epoch.Load()
	if e&1 == 0 {
		return Pass{word: e}, true
	}
	if i.probing || at(now) < i.next {
		return Pass{}, false
	}
	i.probing = true
	return Pass{word: e, probe: true}, true
}

// Report ends an attempt that Enter gave leave to. A good probe ends the isolation: it is
// returned. A bad one doubles the wait for the next. Only probes matter here: to isolate is
// Isolate.
func (i *Isolation) Report(p Pass, now time.Time, v Verdict) (Isolated, bool) {
	if !p.probe {
		return Isolated{}, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.epoch.Load() != p.word {
		return Isolated{}, false
	}
	i.probing = false
	switch v {
	case Good:
		return i.end()
	case Bad:
		i.wait = min(2*i.wait, lastProbe)
		i.next = at(now).add(i.wait)
	}
	return Isolated{}, false
}
