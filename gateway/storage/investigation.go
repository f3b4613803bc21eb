package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Investigation is something a person should look into. At most one with the same Cause
// and Scope is open at any time.
type Investigation struct {
	ID       string // "inv_" and a ULID
	Kind     string
	Scope    string
	Cause    string
	OpenedAt time.Time
	ClosedAt time.Time // zero: still open
	ClosedBy string
	Note     string
}

const investigationColumns = "SELECT id, kind, scope, cause, opened, closed, closed_by, note FROM investigations"

func scanInvestigation(scan func(...any) error) (i Investigation, err error) {
	var opened, closed int64
	err = scan(&i.ID, &i.Kind, &i.Scope, &i.Cause, &opened, &closed, &i.ClosedBy, &i.Note)
	i.OpenedAt, i.ClosedAt = instant(opened), instant(closed)
	return i, err
}

// Investigations lists investigations, newest first; with openOnly those not closed.
func (db *DB) Investigations(ctx context.Context, openOnly bool) ([]Investigation, error) {
	query := investigationColumns
	if openOnly {
		query += " WHERE closed = 0"
	}
	return list(ctx, db.read, scanInvestigation, query+" ORDER BY opened DESC, id DESC")
}

// OpenInvestigation opens an investigation unless one of the same cause and scope is
// open. It returns the one that is open now, and whether this call opened it. ID is given
// here, OpenedAt where it is zero.
func (db *DB) OpenInvestigation(ctx context.Context, i Investigation) (Investigation, bool, error) {
	if i.Kind == "" || i.Scope == "" || i.Cause == "" {
		return i, false, errors.New("storage: an investigation needs a kind, a scope and a cause")
	}
	if i.OpenedAt.IsZero() {
		i.OpenedAt = time.Now()
	}
	i.ID = "inv_" + ulid.Make().String()
	var opened int64
	err := db.UpdateDurably(ctx, func(tx *Tx) (err error) {
		opened, err = tx.Exec(`INSERT INTO investigations (id, kind, scope, cause, opened, closed, closed_by, note)
			VALUES (?, ?, ?, ?, ?, 0, '', ?) ON CONFLICT (cause, scope) WHERE closed = 0 DO NOTHING`,
			i.ID, i.Kind, i.Scope, i.Cause, stamp(i.OpenedAt), i.Note)
		return err
	})
	if err != nil || opened == 1 {
		return i, opened == 1, err
	}
	i, err = one(ctx, db.read, scanInvestigation, investigationColumns+" WHERE cause = ? AND scope = ? AND closed = 0", i.Cause, i.Scope)
	return i, false, err
}

// CloseInvestigation closes an open investigation; ErrNotFound where there is none of
// that ID, or it is closed.
func (db *DB) CloseInvestigation(ctx context.Context, id, by, note string) (Investigation, error) {
	err := db.remove(ctx, "UPDATE investigations SET closed = ?, closed_by = ?, note = ? WHERE id = ? AND closed = 0",
		time.Now().UnixNano(), by, note, id)
	if err != nil {
		return Investigation{}, fmt.Errorf("storage: open investigation %s: %w", id, err)
	}
	return one(ctx, db.read, scanInvestigation, investigationColumns+" WHERE id = ?", id)
}
