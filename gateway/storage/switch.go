package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Switch is one kill switch that is set. Kind and Name are the two parts of its path in
// the admin API: "channel" and "GROUP/NAME", "action" and "same_route_retry" and so on.
type Switch struct {
	Kind   string
	Name   string
	Reason string
	Until  time.Time // when it ends by itself; zero: never
	Who    string
	At     time.Time
}

const switchColumns = "SELECT kind, name, reason, until, who, at FROM switches"

func scanSwitch(scan func(...any) error) (s Switch, err error) {
	var until, at int64
	err = scan(&s.Kind, &s.Name, &s.Reason, &until, &s.Who, &at)
	s.Until, s.At = instant(until), instant(at)
	return s, err
}

// Switches lists the switches that are set, expired ones included, by kind and name.
func (db *DB) Switches(ctx context.Context) ([]Switch, error) {
	return list(ctx, db.read, scanSwitch, switchColumns+" ORDER BY kind, name")
}

// PutSwitch sets a switch or replaces it. At is set where it is zero.
func (db *DB) PutSwitch(ctx context.Context, s Switch) error {
	if s.Kind == "" || s.Name == "" {
		return errors.New("storage: a switch needs a kind and a name")
	}
	if s.At.IsZero() {
		s.At = time.Now()
	}
	return db.UpdateDurably(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT OR REPLACE INTO switches (kind, name, reason, until, who, at) VALUES (?, ?, ?, ?, ?, ?)",
			s.Kind, s.Name, s.Reason, stamp(s.Until), s.Who, stamp(s.At))
		return err
	})
}

// DeleteSwitch removes a switch and returns what it was; ErrNotFound where none was set.
func (db *DB) DeleteSwitch(ctx context.Context, kind, name string) (Switch, error) {
	s, err := one(ctx, db.read, scanSwitch, switchColumns+" WHERE kind = ? AND name = ?", kind, name)
	if err != nil {
		return s, fmt.Errorf("storage: switch %s/%s: %w", kind, name, err)
	}
	return s, db.remove(ctx, "DELETE FROM switches WHERE kind = ? AND name = ?", kind, name)
}

// list, one and remove are what the tables of the control state share.

func list[T any](ctx context.Context, q *sql.DB, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reading only
	var all []T
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func one[T any](ctx context.Context, q *sql.DB, scan func(func(...any) error) (T, error), query string, args ...any) (T, error) {
	v, err := scan(q.QueryRowContext(ctx, query, args...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	return v, err
}

func (db *DB) remove(ctx context.Context, query string, args ...any) error {
	return db.UpdateDurably(ctx, func(tx *Tx) error {
		n, err := tx.Exec(query, args...)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		return err
	})
}
