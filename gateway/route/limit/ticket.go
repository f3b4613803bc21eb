package limit

import (
	"sync/atomic"
	"time"
)

// Ticket is a place in a gate's queue. The zero value is ready for use and may be used again
// and again, for one gate at a time, by one goroutine; only Cancel may come from others.
type Ticket struct {
	gate    atomic.Pointer[Gate]
	told    chan struct{} // holds one token once the state is no longer queued
	timer   *time.Timer
	expires time.Time

	// The rest is guarded by the gate's lock.
	state      ticketState
	line       *line
	prev, next *Ticket
}

type ticketState uint8

const (
	idle      ticketState = iota // in no queue
	queued                       //
	granted                      // holds a permit that Wait has not returned yet
	refused                      // pushed out
	cancelled                    //
)

// Result says how a Wait ended.
type Result uint8

// The results.
const (
	Entered   Result = iota // the permit is held: give it back with Gate.Leave
	Expired                 // the queue's wait or until has passed; the place is given up
	Refused                 // pushed out of a full queue by a key with fewer waiting
	Cancelled               // Cancel was called; the place or the permit is given up
	Woken                   // wake has passed: still in the queue, call Wait again
	Changed                 // changed was closed: still in the queue, call Wait again or Cancel
)

var resultNames = [...]string{"entered", "expired", "refused", "cancelled", "woken", "changed"}

func (r Result) String() string { return resultNames[r] }

// prepare makes the ticket ready for a queue. It belongs to nobody else now: the gate it was
// in last has let go of it.
func (t *Ticket) prepare() {
	if t.told == nil {
		t.told = make(chan struct{}, 1)
	}
	select {
	case <-t.told:
	default:
	}
	t.expires = time.Time{}
}

func (t *Ticket) join(g *Gate, s ticketState) {
	t.state = s
	t.gate.Store(g)
}

// tell wakes Wait. The channel has room: a ticket leaves the queue once.
func (t *Ticket) tell() {
	select {
	case t.told <- struct{}{}:
	default:
	}
}

// Expires returns when the queue's wait is over, zero if the permit was free at once.
func (t *Ticket) Expires() time.Time { return t.expires }

// Wait waits for the permit until the queue's wait is over or until has passed (zero =
// never), and returns early at wake (zero = never) or when changed is closed (nil = never).
// After Woken and Changed the ticket keeps its place. A ticket that is in no queue is
// Cancelled.
func (t *Ticket) Wait(until, wake time.Time, changed <-chan struct{}) Result {
	select {
	case <-t.told:
		return t.outcome()
	default:
	}
	g := t.gate.Load()
	if g == nil {
		return Cancelled
	}
	end := t.expires
	if !until.IsZero() && (end.IsZero() || until.Before(end)) {
		end = until
	}
	next, early := end, false
	if !wake.IsZero() && (next.IsZero() || wake.Before(next)) {
		next, early = wake, true
	}
	switch t.pause(next, changed) {
	case paused:
		if early {
			return Woken
		}
		return t.giveUp()
	case disturbed:
		return Changed
	default:
		return t.outcome()
	}
}

type pauseEnd uint8

const (
	paused    pauseEnd = iota // the time came
	toldSo                    // the ticket's state changed
	disturbed                 // changed was closed
)

func (t *Ticket) pause(next time.Time, changed <-chan struct{}) pauseEnd {
	var ring <-chan time.Time
	if !next.IsZero() {
		d := time.Until(next)
		if d <= 0 {
			return paused
		}
		if t.timer == nil {
			t.timer = time.NewTimer(d)
		} else {
			t.timer.Reset(d)
		}
		defer t.timer.Stop()
		ring = t.timer.C
	}
	select {
	case <-t.told:
		return toldSo
	case <-ring:
		return paused
	case <-changed:
		return disturbed
	}
}

// outcome reads how the ticket left the queue and lets go of the gate.
func (t *Ticket) outcome() Result {
	g := t.gate.Load()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := t.state
	t.release()
	switch s {
	case granted:
		return Entered
	case refused:
		return Refused
	default:
		return Cancelled
	}
}

// giveUp leaves the queue, unless the permit came at the last moment.
func (t *Ticket) giveUp() Result {
	g := t.gate.Load()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := t.state
	if s == queued {
		g.remove(t)
	}
	t.release()
	switch s {
	case queued:
		return Expired
	case granted:
		return Entered
	case refused:
		return Refused
	default:
		return Cancelled
	}
}

// release makes the ticket idle. The gate's lock is held.
func (t *Ticket) release() {
	t.state = idle
	t.gate.Store(nil)
}

// Cancel gives up the place, or a permit that was granted but not yet seen by Wait, and wakes
// Wait. It does nothing to a ticket that is not in a queue. It never blocks for long.
func (t *Ticket) Cancel() {
	g := t.gate.Load()
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.gate.Load() != g {
		return // it has left meanwhile
	}
	switch t.state {
	case queued:
		g.remove(t)
	case granted:
		g.running--
		g.admit()
	default:
		return
	}
	t.state = cancelled
	t.tell()
}
