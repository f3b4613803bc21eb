package policy

import (
	"sync"
	"sync/atomic"
	"time"
)

// A revision passes its probes and may still have inputs that it never comes to an end with:
// each of them fails closed, and costs its whole time. A trial finds out.

const (
	lateRow = 5 // decisions of one point in a row that timed out, kept ones not counted
	lateFor = 4 // … over that many time-outs at least: a machine that stands still is no policy
)

// TrialFor is how long a new revision has to prove itself.
const TrialFor = time.Hour

// trial watches the decisions of a revision.
type trial struct {
	points  [points]lateness
	failing chan struct{} // closed when it keeps timing out
	once    sync.Once
}

type lateness struct {
	row   atomic.Int32
	since atomic.Int64 // of the first of the row, Unix nanoseconds
}

// saw counts one evaluation.
func (t *trial) saw(p Point, late bool, timeout time.Duration) {
	l := &t.points[p]
	if !late {
		if l.row.Load() != 0 {
			l.row.Store(0)
		}
		return
	}
	now := time.Now().UnixNano()
	n := l.row.Add(1)
	if n == 1 {
		l.since.Store(now)
	}
	if n >= lateRow && time.Duration(now-l.since.Load()) >= lateFor*timeout {
		t.once.Do(func() { close(t.failing) })
	}
}

// Failing is closed when the decisions of a point keep timing out.
func (r *Revision) Failing() <-chan struct{} { return r.trial.failing }
