package key

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Table finds keys. It is immutable: make a new one when a key is made or removed.
type Table struct {
	byDigest map[[sha256.Size]byte]*Key
	all      []*Key
}

// NewTable returns a table of the configuration's keys and those made at run time. It is
// always usable: the error says which keys are not in it. That is one made at run time that
// cannot be read, or that has the name or the digest of another, which goes first.
func NewTable(fromConfig []config.Key, madeAtRunTime []storage.Key) (*Table, error) {
	t := &Table{byDigest: make(map[[sha256.Size]byte]*Key, len(fromConfig)+len(madeAtRunTime))}
	names := map[string]bool{}
	var problems []error
	add := func(k *Key) {
		switch {
		case names[k.Name]:
			problems = append(problems, fmt.Errorf("key %q: another key has this name", k.Name))
		case t.byDigest[k.digest] != nil:
			problems = append(problems, fmt.Errorf("key %q: it is the same as key %q", k.Name, t.byDigest[k.digest].Name))
		default:
			names[k.Name] = true
			t.byDigest[k.digest] = k
			t.all = append(t.all, k)
		}
	}
	for i := range fromConfig {
		add(configured(&fromConfig[i]))
	}
	for i := range madeAtRunTime {
		k, err := made(&madeAtRunTime[i])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		add(k)
	}
	return t, errors.Join(problems...)
}

// All lists the keys, the configuration's first. The slice is not to be changed.
func (t *Table) All() []*Key { return t.all }

// Find returns the key that was presented, nil if there is none. It allocates nothing.
//
// Keys are looked up by their SHA-256: how long that takes depends on digests, which nobody
// can choose bit by bit, and not on how much of a key is right.
func (t *Table) Find(presented []byte) *Key {
	if len(presented) == 0 {
		return nil
	}
	d := sha256.Sum256(presented)
	k := t.byDigest[d]
	if k == nil || subtle.ConstantTimeCompare(k.digest[:], d[:]) != 1 {
		return nil
	}
	return k
}
