package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Isolation takes a scope out of service until its credential changes, an operator ends
// it, or a probe succeeds.
type Isolation struct {
	Scope       string // such as "account/acme-openai" or "channel/primary/openai-eu"
	Reason      string
	Since       time.Time
	Fingerprint string // of the credential in use then, never the credential
}

const isolationColumns = "SELECT scope, reason, since, fingerprint FROM isolations"

func scanIsolation(scan func(...any) error) (i Isolation, err error) {
	var since int64
	err = scan(&i.Scope, &i.Reason, &since, &i.Fingerprint)
	i.Since = instant(since)
	return i, err
}

// Isolations lists the isolations, oldest first.
func (db *DB) Isolations(ctx context.Context) ([]Isolation, error) {
	return list(ctx, db.read, scanIsolation, isolationColumns+" ORDER BY since, scope")
}

// PutIsolation isolates a scope, or replaces the record of its isolation. Since is set
// where it is zero.
func (db *DB) PutIsolation(ctx context.Context, i Isolation) error {
	if i.Scope == "" {
		return errors.New("storage: an isolation needs a scope")
	}
	if i.Since.IsZero() {
		i.Since = time.Now()
	}
	return db.UpdateDurably(ctx, func(tx *Tx) error {
		_, err := tx.Exec("INSERT OR REPLACE INTO isolations (scope, reason, since, fingerprint) VALUES (?, ?, ?, ?)",
			i.Scope, i.Reason, stamp(i.Since), i.Fingerprint)
		return err
	})
}

// DeleteIsolation ends the isolation of a scope and returns what it was; ErrNotFound
// where there is none.
func (db *DB) DeleteIsolation(ctx context.Context, scope string) (Isolation, error) {
	i, err := one(ctx, db.read, scanIsolation, isolationColumns+" WHERE scope = ?", scope)
	if err != nil {
		return i, fmt.Errorf("storage: isolation of %s: %w", scope, err)
	}
	return i, db.remove(ctx, "DELETE FROM isolations WHERE scope = ?", scope)
}
