package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Key is a caller's key that was made at run time. The key itself is never kept.
type Key struct {
	ID      string // "key_" and a ULID; set where it is empty
	Name    string
	SHA256  [32]byte
	Groups  []string
	Models  []string
	Budget  string
	Budgets []string
	RPM     int
	Labels  map[string]string
	Who     string
	Created time.Time // set where it is zero
}

// keySpec is what a key may do, kept as JSON: nothing is looked up by it.
type keySpec struct {
	Groups  []string          `json:"groups,omitempty"`
	Models  []string          `json:"models,omitempty"`
	Budget  string            `json:"budget,omitempty"`
	Budgets []string          `json:"budgets,omitempty"`
	RPM     int               `json:"rpm,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

const keyColumns = "SELECT id, name, sha256, spec, who, created FROM caller_keys"

func scanKey(scan func(...any) error) (k Key, err error) {
	var sum []byte
	var spec string
	var created int64
	if err = scan(&k.ID, &k.Name, &sum, &spec, &k.Who, &created); err != nil {
		return k, err
	}
	copy(k.SHA256[:], sum)
	k.Created = instant(created)
	var s keySpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return k, fmt.Errorf("storage: key %s: %w", k.ID, err)
	}
	k.Groups, k.Models, k.Budget, k.Budgets, k.RPM, k.Labels = s.Groups, s.Models, s.Budget, s.Budgets, s.RPM, s.Labels
	return k, nil
}

// Keys lists the caller keys, oldest first.
func (db *DB) Keys(ctx context.Context) ([]Key, error) {
	return list(ctx, db.read, scanKey, keyColumns+" ORDER BY created, id")
}

// AddKey keeps a new caller key and returns it with its ID. A second key of the same
// name, ID or digest is an error.
func (db *DB) AddKey(ctx context.Context, k Key) (Key, error) {
	if k.Name == "" || k.SHA256 == [32]byte{} {
		return k, errors.New("storage: a key needs a name and a digest")
	}
	if k.Created.IsZero() {
		k.Created = time.Now()
	}
	if k.ID == "" {
		k.ID = "key_" + ulid.Make().String()
	}
	spec, err := json.Marshal(keySpec{k.Groups, k.Models, k.Budget, k.Budgets, k.RPM, k.Labels})
	if err != nil {
		return k, err
	}
	return k, db.UpdateDurably(ctx, func(tx *Tx) error {
		switch n, err := tx.Int("SELECT count(*) FROM caller_keys WHERE name = ? OR id = ? OR sha256 = ?", k.Name, k.ID, k.SHA256[:]); {
		case err != nil:
			return err
		case n > 0:
			return fmt.Errorf("storage: a key named %q exists already", k.Name)
		}
		_, err := tx.Exec("INSERT INTO caller_keys (id, name, sha256, spec, who, created) VALUES (?, ?, ?, ?, ?, ?)",
			k.ID, k.Name, k.SHA256[:], string(spec), k.Who, stamp(k.Created))
		return err
	})
}

// DeleteKey removes a caller key and returns what it was; ErrNotFound where there is none.
func (db *DB) DeleteKey(ctx context.Context, id string) (Key, error) {
	k, err := one(ctx, db.read, scanKey, keyColumns+" WHERE id = ?", id)
	if err != nil {
		return k, fmt.Errorf("storage: key %s: %w", id, err)
	}
	return k, db.remove(ctx, "DELETE FROM caller_keys WHERE id = ?", id)
}
