package ledger

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// While storage is away, what should have been committed goes to the spool, and while
// anything is in the spool everything goes there, so that order holds. What the spool
// does not take either stays in the backlog: attempts are refused from then on, so that
// the backlog is at most what was on its way, and the ends of the requests that run.

const (
	retryEvery = 250 * time.Millisecond
	loadAtOnce = 1000 // frames in one transaction
)

func (w *writer) goAway(err error) {
	why := err.Error()
	w.l.away.Store(&why)
	w.retryAt = time.Now().Add(retryEvery)
}

// degraded takes entries while storage is away.
func (w *writer) degraded(entries []entry) {
	w.backlog = append(w.backlog, entries...)
	w.fillSpool()
	refused := len(w.backlog) > 0
	w.l.refusing.Store(refused)
	if !refused {
		w.answer(nil)
		return
	}
	if len(w.tickets) > 0 {
		w.dropUnanswered()
		w.answer(ErrUnavailable)
	}
}

// fillSpool moves the backlog to the spool, as much as it takes.
func (w *writer) fillSpool() {
	if w.spool == nil || len(w.backlog) == 0 {
		return
	}
	portable := encoder{}
	frames, n := []byte(nil), 0
	for _, e := range w.backlog {
		frame, err := appendFrame(frames, &portable, e.rec)
		if err != nil {
			// Nothing that is portable can fail but a fault of ours: do not keep it for ever.
			w.l.lose(err)
			n++
			continue
		}
		if !w.spool.fits(len(frame)) {
			break
		}
		frames = frame
		n++
	}
	if len(frames) > 0 {
		if err := w.spool.append(frames); err != nil {
			why := err.Error()
			w.l.away.Store(&why)
			return
		}
	}
	for _, e := range w.backlog[:n] {
		e.origin.row.unsure = true
	}
	w.release(w.backlog[:n])
	w.backlog = append(w.backlog[:0], w.backlog[n:]...)
	w.l.spoolBytes.Store(w.spool.waiting())
}

// dropUnanswered takes out of the backlog the attempts whose callers wait and are about
// to be refused: those attempts are not made.
func (w *writer) dropUnanswered() {
	kept := w.backlog[:0]
	for _, e := range w.backlog {
		if n := len(e.rec.Attempts); !e.final() && n > 0 && e.rec.Attempts[n-1].End == failure.Open {
			w.release([]entry{e})
			continue
		}
		kept = append(kept, e)
	}
	clear(w.backlog[len(kept):])
	w.backlog = kept
}

// comeBack tries the storage again when it is time, and loads what waits.
func (w *writer) comeBack() {
	if time.Now().Before(w.retryAt) {
		return
	}
	w.retryAt = time.Now().Add(retryEvery)
	done, err := w.load()
	w.l.spoolBytes.Store(w.spool.waiting())
	switch {
	case err != nil:
		w.goAway(err)
	case !done: // let the queue have its turn, then go on at once
		w.retryAt = time.Time{}
		signal(w.l.wake)
		signal(w.l.urgent)
	default:
		w.l.away.Store(nil)
		w.l.refusing.Store(false)
	}
}

// load writes one part of what waits to the database and reports whether it was the last.
func (w *writer) load() (done bool, err error) {
	if w.spool.waiting() > 0 {
		entries, read, err := w.spool.peek(loadAtOnce)
		if err != nil {
			return false, err
		}
		if _, err := w.commit(entries); err != nil {
			return false, err
		}
		if err := w.spool.advance(read); err != nil {
			return false, err
		}
		return false, nil
	}
	w.floorOld = true // something is written even where nothing waits: that is the probe
	rest, err := w.commit(w.backlog)
	w.backlog = append(w.backlog[:0], rest...)
	if err != nil {
		return false, err
	}
	return true, nil
}
