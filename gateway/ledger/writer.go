package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// group is how long the writer waits for company before it commits: with the commit
// itself it stays below the 20 ms that group_commit promises.
const group = 10 * time.Millisecond

// The states of a request's row. They are all stored in one byte, so that closing a row
// does not change its size.
const (
	stateOpen     = 2
	stateClean    = 3
	stateTroubled = 4
)

// slack is kept free in the row of an open request for what its end will add: an update
// that keeps the size of the row is done in place.
const slack = 112

// row is what the writer knows about a record's row.
type row struct {
	seq      int64
	size     int     // of the body, padding included
	known    bool    // it was written
	unsure   bool    // it may have been written: look it up by the ID
	action   bool    // listed under its user action
	troubled bool    // listed among the troubled
	newest   *Record // the last state of the record in this round
}

// writer turns records into rows, in one goroutine.
type writer struct {
	l        *Ledger
	words    *dictionary
	texts    *texts
	enc      encoder
	buf      []byte
	pending  []entry
	tickets  []*ticket
	buffers  [maxShards][]entry
	openRows map[int64]struct{}
	floor    int64 // no open row is below it
	floorOld bool  // the floor has moved since it was written
	floorAt  time.Time
	started  bool // the open rows of earlier processes are closed
	spool    *spool
	backlog  []entry // what neither storage nor spool would take, in order
	retryAt  time.Time
	closed   error
}

// write is the writer's goroutine.
func (l *Ledger) write() {
	defer close(l.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := time.Hour
		if l.away.Load() != nil {
			wait = max(0, time.Until(l.w.retryAt))
		}
		timer.Reset(wait)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.stop:
			l.w.finish()
			return
		}
		if l.durability == GroupCommit {
			timer.Reset(group)
			select {
			case <-l.urgent:
			case <-timer.C:
			case <-l.stop:
			}
		}
		l.w.round()
	}
}

// round takes everything that is queued and writes it.
func (w *writer) round() {
	l := w.l
	l.flushMu.Lock()
	flushes := l.flushes
	l.flushes = nil
	l.flushMu.Unlock()

	taken := w.take()
	w.settle()
	for i := range l.shards {
		l.shards[i].give(w.buffers[i])
		w.buffers[i] = nil
	}
	clear(w.pending)
	l.queued.Add(-int64(taken))
	for _, c := range flushes {
		close(c)
	}
}

// take collects the newest state of every record that is queued. What a later state of
// the same record in this round supersedes is never written.
func (w *writer) take() (taken int) {
	l := w.l
	w.pending, w.tickets = w.pending[:0], w.tickets[:0]
	for i := range l.shards {
		entries, t := l.shards[i].take()
		w.buffers[i] = entries
		taken += len(entries)
		if t != nil {
			w.tickets = append(w.tickets, t)
		}
		for _, e := range entries {
			e.origin.row.newest = e.rec
		}
		for _, e := range entries {
			if e.origin.row.newest == e.rec {
				w.pending = append(w.pending, e)
			} else {
				l.recycleSnapshot(e.rec)
			}
		}
	}
	// In the order of their rows: a B-tree that is appended to splits no pages.
	slices.SortFunc(w.pending, func(a, b entry) int { return strings.Compare(a.rec.ID, b.rec.ID) })
	return taken
}

// settle writes what is pending to the database, or else to the spool.
func (w *writer) settle() {
	if w.l.away.Load() != nil {
		w.degraded(w.pending)
		w.comeBack()
		return
	}
	if len(w.pending) == 0 {
		w.answer(nil)
		return
	}
	rest, err := w.commit(w.pending)
	if err != nil {
		w.goAway(err)
		w.degraded(rest)
		return
	}
	w.answer(nil)
}

func (w *writer) answer(err error) {
	for _, t := range w.tickets {
		t.err = err
		close(t.done)
	}
	w.tickets = w.tickets[:0]
}

// commit writes entries and gives their records back. An error means that the storage is
// away; rest is what was not written. A record that can never be written is counted as
// lost, so that it does not hold up all others.
func (w *writer) commit(entries []entry) (rest []entry, err error) {
	err = w.transact(entries)
	if err == nil {
		w.release(entries)
		return nil, nil
	}
	if away(err) {
		return entries, err
	}
	for i := range entries {
		switch err := w.transact(entries[i : i+1]); {
		case err == nil:
		case away(err):
			return entries[i:], err
		default:
			w.l.lose(err)
		}
		w.release(entries[i : i+1])
	}
	return nil, nil
}

// errRecord marks what lies in one record, not in the storage: a row that no database
// would take, or a fault of our own code. It would come again with every try.
var errRecord = errors.New("a record cannot be written")

func away(err error) bool { return !errors.Is(err, errRecord) }

func ofRecord(err error) error {
	if err == nil || storage.Away(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errRecord, err)
}

func (w *writer) transact(entries []entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errRecord, v)
		}
		w.words.end(err == nil)
		if err != nil {
			w.l.failures.Add(1)
			w.texts.forget()
			for _, e := range entries {
				e.origin.row.unsure = true
			}
			return
		}
		w.l.commits.Add(1)
		w.l.written.Add(uint64(len(entries)))
		w.l.lastCommit.Store(w.l.now().UnixNano())
	}()
	commit := w.l.db.Update
	if w.l.durability == Sync { // the same where the database was opened so
		commit = w.l.db.UpdateDurably
	}
	return commit(context.Background(), func(tx *storage.Tx) error {
		if err := w.words.begin(tx); err != nil {
			return err
		}
		w.texts.today = w.l.now().Unix() / 86400
		w.enc.tx = tx
		for _, e := range entries {
			if err := w.put(tx, e.rec, e.origin.row); err != nil {
				return ofRecord(err)
			}
		}
		return w.putFloor(tx)
	})
}

// release gives the records back. Only those whose requests have ended leave the ledger.
func (w *writer) release(entries []entry) {
	for _, e := range entries {
		if e.final() {
			w.l.recycle(e.rec)
		} else {
			w.l.recycleSnapshot(e.rec)
		}
	}
}

// put writes one state of a record.
func (w *writer) put(tx *storage.Tx, r *Record, row *row) error {
	if row.unsure {
		if err := w.locate(tx, r.ID, row); err != nil {
			return err
		}
	}
	body, err := w.enc.record(w.buf[:0], r)
	w.buf = body
	if err != nil {
		return err
	}
	state := stateOf(r)
	if row.known {
		err = w.update(tx, row, state)
	} else {
		err = w.insert(tx, r, row, state)
	}
	if err != nil {
		return err
	}
	w.noteOpen(row.seq, state == stateOpen)
	return w.putRest(tx, r, row)
}

func (w *writer) insert(tx *storage.Tx, r *Record, row *row, state int64) error {
	if state == stateOpen {
		w.pad(len(w.buf) + slack)
	}
	seq, named := wantedPlace(r)
	for {
		n, err := tx.Exec("INSERT OR IGNORE INTO requests (seq, state, body) VALUES (?, ?, ?)", seq, state, w.buf)
		if err != nil {
			return err
		}
		if n == 1 {
			break
		}
		seq, named = seq+1, false // another record of that millisecond is there
	}
	row.seq, row.size, row.known = seq, len(w.buf), true
	if !named {
		_, err := tx.Exec("INSERT OR REPLACE INTO names (id, seq) VALUES (?, ?)", r.ID, seq)
		return err
	}
	return nil
}

func (w *writer) update(tx *storage.Tx, row *row, state int64) error {
	w.pad(row.size)
	_, err := tx.Exec("UPDATE requests SET state = ?, body = ? WHERE seq = ?", state, w.buf, row.seq)
	row.size = len(w.buf)
	return err
}

func (w *writer) pad(size int) {
	if n := size - len(w.buf); n > 0 {
		w.buf = append(w.buf, make([]byte, n)...)
	}
}

// putRest writes what most records have not: further attempts, a named user action,
// trouble.
func (w *writer) putRest(tx *storage.Tx, r *Record, row *row) error {
	if r.UserAction != "" && r.UserAction != r.ID && !row.action {
		if _, err := tx.Exec("INSERT OR IGNORE INTO actions (action, seq) VALUES (?, ?)", clip(r.UserAction, maxCallerText), row.seq); err != nil {
			return err
		}
		row.action = true
	}
	if !row.troubled && (len(r.Attempts) > 1 || len(r.Attempts) == 1 && r.Attempts[0].Class != failure.None ||
		r.Terminal != failure.Running && r.Terminal != failure.Success) {
		if _, err := tx.Exec("INSERT OR IGNORE INTO troubled (seq) VALUES (?)", row.seq); err != nil {
			return err
		}
		row.troubled = true
	}
	for i := 1; i < len(r.Attempts); i++ {
		body, err := w.enc.further(w.buf[:0], &r.Attempts[i])
		w.buf = body
		if err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT OR REPLACE INTO attempts (seq, number, body) VALUES (?, ?, ?)", row.seq, int64(i+1), body); err != nil {
			return err
		}
	}
	return nil
}

func stateOf(r *Record) int64 {
	switch {
	case r.Terminal == failure.Running:
		return stateOpen
	case r.troubled():
		return stateTroubled
	default:
		return stateClean
	}
}

// locate finds the row of a record that may have one.
func (w *writer) locate(tx *storage.Tx, id string, r *row) error {
	*r = row{newest: r.newest}
	found := func(seq int64) error {
		return tx.Each("SELECT body FROM requests WHERE seq = ?", func(cols []any) error {
			if body, ok := cols[0].([]byte); ok && idOf(body) == id {
				r.seq, r.size, r.known = seq, len(body), true
			}
			return nil
		}, seq)
	}
	if seq, ok := placeOf(id); ok {
		if err := found(seq); err != nil || r.known {
			return err
		}
	}
	seq, err := tx.Int("SELECT seq FROM names WHERE id = ?", id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return found(seq)
}

// idOf reads only the ID of a body; "" where it is damaged.
func idOf(body []byte) string {
	d := decoder{b: body}
	d.bytes(headEnd)
	return d.id()
}

// The floor bounds what a start has to look through for open rows: it is below all of
// them, and moves up about once a second.

func (w *writer) noteOpen(seq int64, open bool) {
	if !open {
		delete(w.openRows, seq)
		return
	}
	w.openRows[seq] = struct{}{}
	if seq < w.floor {
		w.floor, w.floorOld = seq, true
	}
}

func (w *writer) putFloor(tx *storage.Tx) error {
	if now := w.l.now(); w.started && now.Sub(w.floorAt) >= time.Second {
		w.floorAt = now
		lowest := placeAt(now.Add(-time.Minute).UnixMilli())
		for seq := range w.openRows {
			lowest = min(lowest, seq)
		}
		if lowest > w.floor {
			w.floor, w.floorOld = lowest, true
		}
	}
	if !w.floorOld {
		return nil
	}
	if _, err := tx.Exec("INSERT OR REPLACE INTO meta (name, value) VALUES ('open_floor', ?)", w.floor); err != nil {
		return err
	}
	w.floorOld = false
	return nil
}

// finish empties the queue for the last time.
func (w *writer) finish() {
	for ended := false; !ended; {
		w.retryAt = time.Time{}
		w.round()
		ended = true
		for i := range w.l.shards {
			ended = w.l.shards[i].end() && ended
		}
	}
	w.round() // answers the flushes that came meanwhile
	for len(w.backlog) > 0 {
		if done, err := w.load(); done || err != nil {
			break
		}
	}
	if n := len(w.backlog); n > 0 {
		w.closed = fmt.Errorf("ledger: %d records could not be written: %s", n, *w.l.away.Load())
	}
	if err := w.spool.close(); err != nil && w.closed == nil {
		w.closed = err
	}
}
