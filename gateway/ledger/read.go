package ledger

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Reader reads a ledger, also one that another process is writing.
type Reader struct {
	db    *storage.DB
	book  *wordbook
	flush func(context.Context) error // makes what is queued visible; nil: nothing is
}

// NewReader reads from a database. [Ledger.Reader] is the one that sees what is queued.
func NewReader(db *storage.DB) *Reader { return &Reader{db: db, book: &wordbook{}} }

// Show returns one request with its decisions; ErrNotFound where there is none.
func (r *Reader) Show(ctx context.Context, id string) (*Record, error) {
	tx, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // reading only
	seq, err := r.find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	found, err := r.rows(ctx, tx, true, "SELECT seq, body FROM requests WHERE seq = ?", seq)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, clip(id, 64))
	}
	return found[0].rec, r.outcomes(ctx, tx, found)
}

// begin starts a transaction that sees everything recorded before the call.
func (r *Reader) begin(ctx context.Context) (*sql.Tx, error) {
	if r.flush != nil {
		if err := r.flush(ctx); err != nil {
			return nil, err
		}
	}
	return r.db.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
}

// find returns the row number of a request.
func (r *Reader) find(ctx context.Context, tx *sql.Tx, id string) (int64, error) {
	if seq, ok := placeOf(id); ok {
		var body []byte
		err := tx.QueryRowContext(ctx, "SELECT body FROM requests WHERE seq = ?", seq).Scan(&body)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, err
		}
		if idOf(body) == id {
			return seq, nil
		}
	}
	var seq int64
	err := tx.QueryRowContext(ctx, "SELECT seq FROM names WHERE id = ?", id).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: %s", ErrNotFound, clip(id, 64))
	}
	return seq, err
}

// found is a request that was read, with its place.
type found struct {
	rec  *Record
	seq  int64
	size int // of its body
}

// scan is rows outside a longer transaction, without decisions' texts.
func (r *Reader) scan(ctx context.Context, query string, args ...any) ([]found, error) {
	tx, err := r.db.Read().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // reading only
	return r.rows(ctx, tx, true, query, args...)
}

// rows reads the requests that a query of seq and body gives, with all their attempts.
// With decisions their inputs and outputs are read too.
func (r *Reader) rows(ctx context.Context, tx *sql.Tx, decisions bool, query string, args ...any) ([]found, error) {
	// All bodies first: a look-up while rows are open would hold one connection and want
	// another.
	type raw struct {
		seq  int64
		body []byte
	}
	var raws []raw
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reading only
	var body sql.RawBytes
	for rows.Next() {
		var one raw
		if err := rows.Scan(&one.seq, &body); err != nil {
			return nil, err
		}
		one.body = bytes.Clone(body)
		raws = append(raws, one)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}

	look := r.lookup(ctx, tx)
	text := look.text
	if !decisions {
		text = nil
	}
	all := make([]found, 0, len(raws))
	for _, one := range raws {
		rec, attempts, err := decodeRecord(one.body, look.word, text)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", one.seq, err)
		}
		if attempts > len(rec.Attempts) {
			if err := r.further(ctx, tx, look, one.seq, rec); err != nil {
				return nil, fmt.Errorf("row %d: %w", one.seq, err)
			}
		}
		if !decisions {
			rec.Decisions = nil
		}
		all = append(all, found{rec, one.seq, len(one.body)})
	}
	return all, nil
}

func (r *Reader) further(ctx context.Context, tx *sql.Tx, look lookup, seq int64, rec *Record) error {
	rows, err := tx.QueryContext(ctx, "SELECT body FROM attempts WHERE seq = ? ORDER BY number", seq)
	if err != nil {
		return err
	}
	var bodies [][]byte
	defer rows.Close() //nolint:errcheck // reading only
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	rec.Attempts = slices.Grow(rec.Attempts, len(bodies))
	for _, body := range bodies {
		a, err := decodeFurther(body, look.word)
		if err != nil {
			return err
		}
		rec.Attempts = append(rec.Attempts, a)
	}
	return nil
}

// outcomes adds what the callers said became of the tasks. The requests are in order of
// their rows, up or down.
func (r *Reader) outcomes(ctx context.Context, tx *sql.Tx, all []found) error {
	if len(all) == 0 {
		return nil
	}
	bySeq := make(map[int64]*Record, len(all))
	for _, f := range all {
		bySeq[f.seq] = f.rec
	}
	lo, hi := all[0].seq, all[len(all)-1].seq
	rows, err := tx.QueryContext(ctx, "SELECT seq, task, score, label FROM outcomes WHERE seq BETWEEN ? AND ?", min(lo, hi), max(lo, hi))
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reading only
	for rows.Next() {
		var seq int64
		var o TaskOutcome
		var score sql.NullFloat64
		if err := rows.Scan(&seq, &o.Task, &score, &o.Label); err != nil {
			return err
		}
		o.Score = Opt[float64]{score.Float64, score.Valid}
		if rec := bySeq[seq]; rec != nil {
			rec.Outcome = Some(o)
		}
	}
	return rows.Err()
}

// lookup finds words and texts within one transaction.
type lookup struct {
	word func(uint32) (string, error)
	text func(int64) ([]byte, error)
}

func (r *Reader) lookup(ctx context.Context, tx *sql.Tx) lookup {
	texts := map[int64][]byte{}
	return lookup{
		word: func(id uint32) (string, error) {
			if w, ok := r.book.word(id); ok {
				return w, nil
			}
			if err := r.learn(ctx, tx, id); err != nil {
				return "", err
			}
			w, ok := r.book.word(id)
			if !ok {
				return "", fmt.Errorf("%w: there is no word %d", errDamaged, id)
			}
			return w, nil
		},
		text: func(id int64) ([]byte, error) {
			if b, ok := texts[id]; ok {
				return b, nil
			}
			var b []byte
			err := tx.QueryRowContext(ctx, "SELECT body FROM texts WHERE id = ?", id).Scan(&b)
			if errors.Is(err, sql.ErrNoRows) { // deleted with the requests of its time
				return nil, nil
			}
			if err == nil {
				texts[id] = b
			}
			return b, err
		},
	}
}

// learn reads the words that another process has added, from this one on: words are never
// deleted, and come in order.
func (r *Reader) learn(ctx context.Context, tx *sql.Tx, from uint32) error {
	rows, err := tx.QueryContext(ctx, "SELECT id, word FROM words WHERE id >= ?", from)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reading only
	for rows.Next() {
		var id uint32
		var word string
		if err := rows.Scan(&id, &word); err != nil {
			return err
		}
		if id >= wordInline {
			return fmt.Errorf("%w: word %d", errDamaged, id)
		}
		r.book.learn(id, word)
	}
	return rows.Err()
}

// SetOutcome keeps what became of the task of a request that key asked for, the last word
// counting. ErrNotFound where there is none of that ID and key.
func (l *Ledger) SetOutcome(ctx context.Context, key, id string, o TaskOutcome) error {
	if o.Task != "success" && o.Task != "failure" {
		return fmt.Errorf("ledger: outcome %q: allowed are success and failure", clip(o.Task, 40))
	}
	if o.Score.Known && !(o.Score.Value >= 0 && o.Score.Value <= 1) {
		return errors.New("ledger: an outcome's score is from 0 to 1")
	}
	rec, err := l.reader.Show(ctx, id)
	if err != nil {
		return err
	}
	if rec.Key != key {
		return fmt.Errorf("%w: %s", ErrNotFound, clip(id, 64))
	}
	var score any
	if o.Score.Known {
		score = o.Score.Value
	}
	return l.db.Update(ctx, func(tx *storage.Tx) error {
		seq, ok := placeOf(id)
		if n, err := tx.Int("SELECT seq FROM names WHERE id = ?", id); err == nil {
			seq, ok = n, true
		}
		if !ok {
			return ErrNotFound
		}
		_, err := tx.Exec("INSERT OR REPLACE INTO outcomes (seq, task, score, label, at) VALUES (?, ?, ?, ?, ?)",
			seq, o.Task, score, clip(o.Label, maxCallerText), time.Now().UnixNano())
		return err
	})
}
