package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// start makes the writer ready: the spool of an earlier process first, for it may hold the
// ends of attempts that are open in the database; then the attempts that nobody will end.
func (w *writer) start(ctx context.Context, l *Ledger, o Options) (err error) {
	*w = writer{l: l, words: newDictionary(l.book), texts: newTexts(), openRows: map[int64]struct{}{}}
	w.enc = encoder{words: w.words, texts: w.texts}
	if w.spool, err = openSpool(o.SpoolPath, o.SpoolLimit); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.spool.close()
		}
	}()
	if w.floor, err = w.storedFloor(ctx); err != nil {
		return err
	}
	for w.spool.waiting() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := w.load(); err != nil {
			return fmt.Errorf("loading the spool: %w", err)
		}
	}
	if err := w.transact(nil); err != nil { // the words, before anything is read
		return err
	}
	return w.interrupt(ctx)
}

// interrupt closes what a process that is gone has left open.
func (w *writer) interrupt(ctx context.Context) error {
	for from := w.floor; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := w.l.reader.scan(ctx, "SELECT seq, body FROM requests WHERE seq >= ? AND state = 2 ORDER BY seq LIMIT 500", from)
		if err != nil {
			return fmt.Errorf("looking for open attempts: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		entries := make([]entry, 0, len(rows))
		for _, found := range rows {
			r := found.rec
			r.row = &row{seq: found.seq, size: found.size, known: true}
			interrupted(r)
			entries = append(entries, entry{rec: r, origin: r})
			from = found.seq + 1
		}
		if err := w.transact(entries); err != nil {
			return fmt.Errorf("closing open attempts: %w", err)
		}
	}
	clear(w.openRows)
	w.started, w.floor, w.floorAt = true, 0, time.Time{} // the next transaction moves it up
	return w.transact(nil)
}

func interrupted(r *Record) {
	r.Terminal = failure.Interrupted
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.End == failure.Open {
			a.End, a.Class, a.state = failure.EndUnknown, failure.Unknown, attemptClosed
		}
	}
}

func (w *writer) storedFloor(ctx context.Context) (floor int64, err error) {
	err = w.l.db.Update(ctx, func(tx *storage.Tx) error {
		floor, err = tx.Int("SELECT value FROM meta WHERE name = 'open_floor'")
		if errors.Is(err, storage.ErrNotFound) {
			floor, err = 0, nil
		}
		return err
	})
	return floor, err
}
