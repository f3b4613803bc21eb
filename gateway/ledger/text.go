package ledger

import (
	"bytes"
	"hash/maphash"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

// texts keeps each distinct input and output of a decision once. Most requests have
// inputs that were seen before: those cost a hash and a comparison. The writer's
// goroutine owns it.
type texts struct {
	seed  maphash.Seed
	known map[uint64]keptText
	size  int
	today int64 // day number, for "used"
}

type keptText struct {
	id   int64
	used int64 // the day that the row says
	body []byte
}

// The cache is emptied when it holds this much.
const (
	maxKeptTexts = 8192
	maxKeptBytes = 16 << 20
)

func newTexts() *texts {
	return &texts{seed: maphash.MakeSeed(), known: map[uint64]keptText{}}
}

// forget empties the cache: after a failed transaction it may hold rows that are not there.
func (t *texts) forget() {
	clear(t.known)
	t.size = 0
}

// keep returns the number of a text, storing it where it is new. b must never change.
func (t *texts) keep(tx *storage.Tx, b []byte) (int64, error) {
	h := maphash.Bytes(t.seed, b)
	if k, ok := t.known[h]; ok && bytes.Equal(k.body, b) {
		if k.used == t.today {
			return k.id, nil
		}
		n, err := tx.Exec("UPDATE texts SET used = ? WHERE id = ?", t.today, k.id)
		if err != nil {
			return 0, err
		}
		if n == 1 {
			k.used = t.today
			t.known[h] = k
			return k.id, nil
		}
		// It was long unused and has been deleted.
	}
	sum := digest(b)
	id, err := tx.Int(`INSERT INTO texts (sha256, used, body) VALUES (?, ?, ?)
		ON CONFLICT (sha256) DO UPDATE SET used = excluded.used RETURNING id`, sum[:], t.today, b)
	if err != nil {
		return 0, err
	}
	if len(t.known) >= maxKeptTexts || t.size+len(b) > maxKeptBytes {
		t.forget()
	}
	t.known[h] = keptText{id: id, used: t.today, body: b}
	t.size += len(b)
	return id, nil
}
