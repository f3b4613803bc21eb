package storage

import "context"

// Switches lists the switches that are set, expired ones included, by kind and name.
func (db *DB) Switches(ctx context.Context) ([]Switch, error) { panic("skeleton") }

// PutSwitch sets a switch or replaces it.
func (db *DB) PutSwitch(ctx context.Context, s Switch) error { panic("skeleton") }

// DeleteSwitch removes a switch and returns what it was; ErrNotFound where none was set.
func (db *DB) DeleteSwitch(ctx context.Context, kind, name string) (Switch, error) { panic("skeleton") }

// Keys lists the caller keys, oldest first.
func (db *DB) Keys(ctx context.Context) ([]Key, error) { panic("skeleton") }

// AddKey keeps a new caller key. A second key of the same name, ID or digest is an error.
func (db *DB) AddKey(ctx context.Context, k Key) error { panic("skeleton") }

// DeleteKey removes a caller key and returns what it was; ErrNotFound where there is none.
func (db *DB) DeleteKey(ctx context.Context, id string) (Key, error) { panic("skeleton") }

// Isolations lists the isolations, oldest first.
func (db *DB) Isolations(ctx context.Context) ([]Isolation, error) { panic("skeleton") }

// PutIsolation isolates a scope, or replaces the record of its isolation.
func (db *DB) PutIsolation(ctx context.Context, i Isolation) error { panic("skeleton") }

// DeleteIsolation ends the isolation of a scope; ErrNotFound where there is none.
func (db *DB) DeleteIsolation(ctx context.Context, scope string) (Isolation, error) { panic("skeleton") }

// Investigations lists investigations, newest first; with openOnly those not closed.
func (db *DB) Investigations(ctx context.Context, openOnly bool) ([]Investigation, error) {
	panic("skeleton")
}

// OpenInvestigation opens an investigation unless one of the same cause and scope is
// open. It returns the one that is open now, and whether this call opened it. ID and
// OpenedAt are set where they are empty.
func (db *DB) OpenInvestigation(ctx context.Context, i Investigation) (Investigation, bool, error) {
	panic("skeleton")
}

// CloseInvestigation closes an open investigation; ErrNotFound where there is none of
// that ID, or it is closed.
func (db *DB) CloseInvestigation(ctx context.Context, id, by, note string) (Investigation, error) {
	panic("skeleton")
}

// AddChange records a change and returns its ID. At is set where it is zero.
func (db *DB) AddChange(ctx context.Context, c Change) (int64, error) { panic("skeleton") }

// Changes lists changes newest first, at most limit of them, older than the change with
// ID before (0: from the newest).
func (db *DB) Changes(ctx context.Context, before int64, limit int) ([]Change, error) {
	panic("skeleton")
}
