package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

const (
	sweepEvery  = time.Minute
	sweepAtOnce = 500
	// Between two batches the writer has its turn.
	sweepPause = 10 * time.Millisecond
)

// sweep is the goroutine that deletes what is too old or too much.
func (l *Ledger) sweep() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(stopped{l.stop}, cancel)
	defer stop()
	timer := time.NewTimer(sweepPause)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-timer.C:
		}
		if l.away.Load() == nil {
			_ = l.sweepNow(ctx) // what fails now is tried again
		}
		timer.Reset(sweepEvery)
	}
}

// sweepNow deletes what is older than the retention, then the oldest while the database
// is larger than it may be, in small batches.
func (l *Ledger) sweepNow(ctx context.Context) error {
	swept := false
	if l.retention > 0 {
		before := placeAt(l.now().Add(-l.retention).UnixMilli())
		for more := true; more; {
			n, err := l.deleteOldest(ctx, before)
			if err != nil {
				return err
			}
			more, swept = n == sweepAtOnce, swept || n > 0
			if err := pause(ctx); err != nil {
				return err
			}
		}
	}
	for l.maxSize > 0 {
		used, err := l.db.Used(ctx)
		if err != nil {
			return err
		}
		if used <= l.maxSize {
			break
		}
		n, err := l.deleteOldest(ctx, 1<<62)
		if err != nil {
			return err
		}
		if n == 0 { // what is left is not the ledger's, or open
			break
		}
		swept = true
		if err := pause(ctx); err != nil {
			return err
		}
	}
	if !swept {
		return nil
	}
	return l.sweepTexts(ctx)
}

// deleteOldest deletes a batch of the oldest closed requests below a row number.
func (l *Ledger) deleteOldest(ctx context.Context, before int64) (n int64, err error) {
	err = l.db.Update(ctx, func(tx *storage.Tx) error {
		n = 0
		last := int64(-1)
		type name struct {
			seq        int64
			id, action string
		}
		var names []name
		err := tx.Each("SELECT seq, body FROM requests WHERE seq < ? AND state <> 2 ORDER BY seq LIMIT 500", func(row []any) error {
			seq, _ := row[0].(int64)
			body, _ := row[1].([]byte)
			last = seq
			id, action := namesOf(body)
			if place, ok := placeOf(id); !ok || place != seq || action != "" {
				names = append(names, name{seq, id, action})
			}
			return nil
		}, before)
		if err != nil || last < 0 {
			return err
		}
		for _, gone := range names {
			if _, err := tx.Exec("DELETE FROM names WHERE id = ? AND seq = ?", gone.id, gone.seq); err != nil {
				return err
			}
			if _, err := tx.Exec("DELETE FROM actions WHERE action = ? AND seq = ?", gone.action, gone.seq); err != nil {
				return err
			}
		}
		if n, err = tx.Exec("DELETE FROM requests WHERE seq <= ? AND state <> 2", last); err != nil {
			return err
		}
		for _, query := range []string{
			"DELETE FROM attempts WHERE seq <= ? AND seq NOT IN (SELECT seq FROM requests WHERE seq <= ?)",
			"DELETE FROM troubled WHERE seq <= ? AND seq NOT IN (SELECT seq FROM requests WHERE seq <= ?)",
			"DELETE FROM outcomes WHERE seq <= ? AND seq NOT IN (SELECT seq FROM requests WHERE seq <= ?)",
		} {
			if _, err := tx.Exec(query, last, last); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	l.deleted.Add(uint64(n)) // #nosec G115 -- a count
	return n, nil
}

// namesOf reads the ID and the named user action of a body, "" where it has none.
func namesOf(body []byte) (id, action string) {
	d := &decoder{b: body, wordOf: func(uint32) (string, error) { return "", nil }}
	d.version()
	head := d.bytes(headEnd - 1)
	id = d.id()
	for ; len(head) >= 3 && d.fault == nil; head = head[3:] {
		d.numbered(uint32(head[0])<<16 | uint32(head[1])<<8 | uint32(head[2]))
	}
	flags := d.uint()
	d.text() // the correlation ID
	if flags&flagActionIsID == 0 {
		action = d.text()
	}
	return id, action
}

// sweepTexts deletes the texts that were last used before the day of the oldest request
// that is left. Finding them reads them all, so it is done once a day.
func (l *Ledger) sweepTexts(ctx context.Context) error {
	today := l.now().Unix() / 86400
	if today == l.textsSwept {
		return nil
	}
	oldest := placeAt(l.now().UnixMilli())
	err := l.db.Read().QueryRowContext(ctx, "SELECT seq FROM requests ORDER BY seq LIMIT 1").Scan(&oldest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	day := (oldest >> placeBits) / 86_400_000
	for from := int64(0); ; {
		ids, err := l.unusedTexts(ctx, from, day-1)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			break
		}
		from = ids[len(ids)-1]
		err = l.db.Update(ctx, func(tx *storage.Tx) error {
			for _, id := range ids { // used again since then: kept
				if _, err := tx.Exec("DELETE FROM texts WHERE id = ? AND used < ?", id, day-1); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	l.textsSwept = today
	return nil
}

func (l *Ledger) unusedTexts(ctx context.Context, after, day int64) (ids []int64, err error) {
	rows, err := l.db.Read().QueryContext(ctx, "SELECT id FROM texts WHERE id > ? AND used < ? ORDER BY id LIMIT 500", after, day)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reading only
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func pause(ctx context.Context) error {
	t := time.NewTimer(sweepPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopped is a channel seen as a context.
type stopped struct{ c <-chan struct{} }

func (stopped) Deadline() (time.Time, bool) { return time.Time{}, false }
func (s stopped) Done() <-chan struct{}     { return s.c }
func (stopped) Value(any) any               { return nil }

func (s stopped) Err() error {
	select {
	case <-s.c:
		return context.Canceled
	default:
		return nil
	}
}
