package storage

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// writer is the one connection that writes. It is used below database/sql: a ledger row
// costs a few microseconds, and the pool's bookkeeping would double that.
type writer struct {
	source string
	sync   bool

	turn  chan struct{} // holds one token; whoever has it owns the rest
	conn  driver.Conn   // nil until first used, and after a failure that may have broken it
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	done  bool
}

func newWriter(source string, sync bool) *writer {
	w := &writer{source: source, sync: sync, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

// Update runs f in one transaction of the only writer and commits it if f returns nil.
// Waiting for the turn ends with ctx; a transaction that runs is not cut short. With
// group commit a power cut may undo what was committed last; see UpdateDurably.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	return db.update(ctx, false, f)
}

// UpdateDurably is Update for what must survive a power cut too.
func (db *DB) UpdateDurably(ctx context.Context, f func(*Tx) error) error {
	return db.update(ctx, true, f)
}

func (db *DB) update(ctx context.Context, durably bool, f func(*Tx) error) error {
	if db.write == nil {
		return ErrReadOnly
	}
	return db.write.do(ctx, durably, f)
}

func (w *writer) do(ctx context.Context, durably bool, f func(*Tx) error) (err error) {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.done {
		return ErrClosed
	}
	if err := w.connect(); err != nil {
		return err
	}
	defer func() {
		if err != nil && broken(err) {
			w.disconnect()
		}
	}()
	if durably && !w.sync {
		if err := w.exec("PRAGMA synchronous = FULL"); err != nil {
			return err
		}
		defer func() { _ = w.exec("PRAGMA synchronous = NORMAL") }()
	}
	return w.transact(f)
}

func (w *writer) transact(f func(*Tx) error) (err error) {
	tx := &Tx{w: w}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	finished := false
	defer func() {
		if !finished { // f failed or panicked, or the commit did not go through
			_ = w.exec("ROLLBACK")
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	if err := w.exec("COMMIT"); err != nil {
		return err
	}
	finished = true
	return nil
}

func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	c, err := sqlite.NewConnector(w.source)
	if err != nil {
		return err
	}
	conn, err := c.Connect(context.Background())
	if err != nil {
		return err
	}
	w.conn, w.stmts = conn, map[string]driver.Stmt{}
	return nil
}

func (w *writer) disconnect() {
	for _, s := range w.stmts {
		_ = s.Close()
	}
	w.stmts = nil
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

func (w *writer) close() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	w.done = true
	w.disconnect()
	return nil
}

func (w *writer) exec(query string, args ...any) error {
	_, err := w.run(query, args)
	return err
}

func (w *writer) run(query string, args []any) (driver.Result, error) {
	s, err := w.statement(query)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(context.Background(), w.named(args))
}

func (w *writer) statement(query string) (driver.Stmt, error) {
	if s := w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := w.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	w.stmts[query] = s
	return s, nil
}

func (w *writer) named(args []any) []driver.NamedValue {
	w.args = w.args[:0]
	for i, a := range args {
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return w.args
}

// Tx is one transaction of the writer. It is used by one goroutine, inside the function
// it was given to. Statements are prepared once and kept: queries must be constants, with
// arguments of the types int64, float64, string, []byte and nil.
type Tx struct{ w *writer }

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	r, err := t.w.run(query, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Each calls f with every row; the row is valid during the call. No other statement with
// the same text may run meanwhile.
func (t *Tx) Each(query string, f func(row []any) error, args ...any) error {
	s, err := t.w.statement(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), t.w.named(args))
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reading only
	values := make([]driver.Value, len(rows.Columns()))
	row := make([]any, len(values))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		for i, v := range values {
			row[i] = v
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// Int returns the first column of the first row as a number; ErrNotFound without a row.
func (t *Tx) Int(query string, args ...any) (int64, error) {
	var n int64
	found := false
	err := t.Each(query, func(row []any) error {
		if found {
			return nil
		}
		v, ok := row[0].(int64)
		if !ok {
			return fmt.Errorf("%q gave %T where a number was expected", query, row[0])
		}
		n, found = v, true
		return nil
	}, args...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return n, err
}

// script runs several statements that are used once.
func (t *Tx) script(statements string) error {
	_, err := t.w.conn.(driver.ExecerContext).ExecContext(context.Background(), statements, nil)
	return err
}

// Away reports whether an error means that the storage cannot be used now (locked, full,
// failing, gone), as against a statement that could never succeed.
func Away(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err != nil && (errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_MISMATCH, lib.SQLITE_TOOBIG, lib.SQLITE_RANGE, lib.SQLITE_ERROR, lib.SQLITE_MISUSE:
		return false
	}
	return true
}

// broken reports whether the connection should be made anew before it is used again.
func broken(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_FULL, lib.SQLITE_CONSTRAINT:
		return false
	}
	return true
}

// damaged gives SQLite's own words for a damaged file our name.
func damaged(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_CORRUPT || e.Code()&0xff == lib.SQLITE_NOTADB) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
