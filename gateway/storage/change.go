package storage

import (
	"context"
	"math"
	"time"
)

// Change is one change that an operator made. Before and After are JSON, empty where
// there was nothing.
type Change struct {
	ID     int64
	At     time.Time
	Who    string
	What   string
	Before string
	After  string
	Reason string
}

func scanChange(scan func(...any) error) (c Change, err error) {
	var at int64
	err = scan(&c.ID, &at, &c.Who, &c.What, &c.Before, &c.After, &c.Reason)
	c.At = instant(at)
	return c, err
}

// AddChange records a change and returns its ID. At is set where it is zero.
func (db *DB) AddChange(ctx context.Context, c Change) (int64, error) {
	if c.At.IsZero() {
		c.At = time.Now()
	}
	var id int64
	err := db.UpdateDurably(ctx, func(tx *Tx) (err error) {
		id, err = tx.Int("INSERT INTO changes (at, who, what, before, after, reason) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
			stamp(c.At), c.Who, c.What, c.Before, c.After, c.Reason)
		return err
	})
	return id, err
}

// Changes lists changes newest first, at most limit of them (0: 100), older than the
// change with ID before (0: from the newest).
func (db *DB) Changes(ctx context.Context, before int64, limit int) ([]Change, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	if limit <= 0 {
		limit = 100
	}
	return list(ctx, db.read, scanChange,
		"SELECT id, at, who, what, before, after, reason FROM changes WHERE id < ? ORDER BY id DESC LIMIT ?", before, limit)
}
