package limit

import (
	"sync"
	"sync/atomic"
	"time"
)

// Minute is the length of every Window.
const Minute = 60 * time.Second

// exact is the number of admissions whose times are kept one by one. A window with a larger
// limit rounds times up to a grain, so that its memory is bounded: it never admits more than
// its limit in a minute, but a place may become free a grain later than it could.
const (
	exact = 1 << 16
	grain = Minute / (exact / 2)
)

// Window admits at most a number of times in any minute, the whole burst allowed. A minute is
// half open: an admission at t is forgotten at t + 60 s. All methods may be called from any
// goroutine.
type Window struct {
	limit atomic.Int64 // 0 = none

	mu  sync.Mutex
	log ring
	n   int64 // admissions in the log
}

// admission is a number of admissions at one time.
type admission struct {
	at instant
	n  int64
}

// NewWindow returns a window that admits perMinute times in any 60 s; 0 or less = no limit.
func NewWindow(perMinute int) *Window {
	w := &Window{}
	w.SetLimit(perMinute)
	return w
}

// SetLimit changes the limit and keeps what was admitted. While there is no limit nothing is
// remembered.
func (w *Window) SetLimit(perMinute int) { w.limit.Store(int64(max(perMinute, 0))) }

// Limit returns the admissions allowed in a minute, 0 if they are not limited.
func (w *Window) Limit() int { return int(w.limit.Load()) }

// Take admits, or says when the next admission will be possible.
func (w *Window) Take(now time.Time) (ok bool, next time.Time) { return w.ask(now, true) }

// Room says what Take would, and admits nothing.
func (w *Window) Room(now time.Time) (ok bool, next time.Time) { return w.ask(now, false) }

func (w *Window) ask(now time.Time, take bool) (bool, time.Time) {
	limit := w.limit.Load()
	if limit == 0 {
		return true, time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := at(now)
	w.forget(t)
	if w.n >= limit {
		return false, now.Add(time.Duration(w.frees(w.n-limit) - t))
	}
	if take {
		w.admit(t, limit)
	}
	return true, time.Time{}
}

// forget drops what is older than a minute.
func (w *Window) forget(now instant) {
	for w.log.len > 0 {
		oldest := w.log.at(0)
		if now-oldest.at < instant(Minute) {
			return
		}
		w.n -= oldest.n
		w.log.drop()
	}
}

// frees returns when the admission with that rank, oldest first, is forgotten.
func (w *Window) frees(rank int64) instant {
	for i := 0; ; i++ {
		a := w.log.at(i)
		if rank < a.n {
			return a.at + instant(Minute)
		}
		rank -= a.n
	}
}

func (w *Window) admit(now instant, limit int64) {
	w.n++
	if limit > exact {
		now += instant(grain) - 1
		now -= now % instant(grain)
	}
	if w.log.len > 0 {
		// Times are read before the lock is taken: they may come out of order. A later time
		// for the same admission is the safe one.
		latest := w.log.at(w.log.len - 1)
		if now <= latest.at {
			latest.n++
			return
		}
	}
	w.log.add(admission{at: now, n: 1})
}

// ring is a queue that grows with what is in it and shrinks when little is.
type ring struct {
	buf  []admission
	head int
	len  int
}

func (r *ring) at(i int) *admission { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring) add(a admission) {
	if r.len == len(r.buf) {
		r.resize(max(16, 2*len(r.buf)))
	}
	r.len++
	*r.at(r.len - 1) = a
}

func (r *ring) drop() {
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.len--
	if len(r.buf) > 1024 && r.len < len(r.buf)/8 {
		r.resize(len(r.buf) / 4)
	}
}

// resize moves the queue into a buffer of that size, a power of two.
func (r *ring) resize(size int) {
	buf := make([]admission, size)
	for i := range r.len {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}
