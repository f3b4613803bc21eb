package ledger

import (
	"fmt"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Names of keys, models, groups, channels, classes and the like repeat in every row. Rows
// hold a word's number; the word itself is kept once. What a caller may invent freely (the
// name of a model that never answered, a correlation ID) is not made a word, so that
// nobody can fill the table.

const (
	wordAbsent = 0
	wordInline = 1<<24 - 1 // no number: the text stands in the row itself
	maxWords   = 1 << 16
	maxWord    = 256 // bytes; longer texts stay in the row
)

// dictionary gives words their numbers. The writer's goroutine owns it; what is committed
// is published to the wordbook that readers use.
type dictionary struct {
	ids     map[string]uint32
	next    uint32
	pending []string // numbered in this transaction, from next-len(pending)
	stale   bool     // a transaction failed: what is in the table must be read again
	book    *wordbook

	classes   [32]uint32
	phases    [8]uint32
	causes    [8]uint32
	ends      [8]uint32
	terminals [8]uint32
	billables [4]uint32
}

func newDictionary(book *wordbook) *dictionary {
	return &dictionary{book: book, stale: true}
}

// begin makes the dictionary fit for a transaction.
func (d *dictionary) begin(tx *storage.Tx) error {
	if !d.stale {
		return nil
	}
	d.ids, d.next, d.pending = map[string]uint32{}, 1, nil
	err := tx.Each("SELECT id, word FROM words", func(row []any) error {
		id, ok := row[0].(int64)
		word, is := row[1].(string)
		if !ok || !is || id < 1 || id >= wordInline {
			return fmt.Errorf("ledger: word %v is damaged", row[0])
		}
		d.ids[word] = uint32(id)
		d.book.learn(uint32(id), word)
		d.next = max(d.next, uint32(id)+1)
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.learnEnums(tx); err != nil {
		return err
	}
	d.stale = false
	return nil
}

// end publishes what the transaction added, or forgets it.
func (d *dictionary) end(committed bool) {
	if !committed {
		d.stale = true
	} else {
		first := d.next - uint32(len(d.pending)) // #nosec G115 -- at most maxWords
		for i, w := range d.pending {
			d.book.learn(first+uint32(i), w) // #nosec G115 -- at most maxWords
		}
	}
	d.pending = d.pending[:0]
}

// known returns a word's number, or wordInline.
func (d *dictionary) known(s string) uint32 {
	if s == "" {
		return wordAbsent
	}
	if id, ok := d.ids[s]; ok {
		return id
	}
	return wordInline
}

// learn returns a word's number and gives it one where it has none and there is room.
func (d *dictionary) learn(tx *storage.Tx, s string) (uint32, error) {
	id := d.known(s)
	if id != wordInline || len(s) > maxWord || len(d.ids) >= maxWords {
		return id, nil
	}
	// s may live in a record's own memory: the dictionary outlives it.
	s = string(append([]byte(nil), s...))
	if _, err := tx.Exec("INSERT INTO words (id, word) VALUES (?, ?)", int64(d.next), s); err != nil {
		return 0, err
	}
	id = d.next
	d.ids[s] = id
	d.next++
	d.pending = append(d.pending, s)
	return id, nil
}

// learnEnums gives every word of the vocabulary a number at once: the numbers of the Go
// constants are no contract and are never stored.
func (d *dictionary) learnEnums(tx *storage.Tx) error {
	var failed error
	set := func(to *uint32, word string) {
		id, err := d.learn(tx, word)
		if err != nil && failed == nil {
			failed = err
		}
		*to = id
	}
	for _, c := range failure.Classes() {
		set(&d.classes[c], c.String())
	}
	for _, p := range failure.Phases() {
		set(&d.phases[p], p.String())
	}
	for c := failure.Initial; c <= failure.ModelSubstitution; c++ {
		set(&d.causes[c], c.String())
	}
	for e := failure.EndSuccess; e <= failure.EndUnknown; e++ {
		set(&d.ends[e], e.String())
	}
	for t := failure.Success; t <= failure.Interrupted; t++ {
		set(&d.terminals[t], t.String())
	}
	for b := BillableUnknown; b <= BillableNo; b++ {
		set(&d.billables[b], b.String())
	}
	return failed
}

// wordbook is what readers look words up in.
type wordbook struct {
	mu    sync.RWMutex
	words []string // by number
}

func (b *wordbook) learn(id uint32, word string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for int(id) >= len(b.words) {
		b.words = append(b.words, "")
	}
	b.words[id] = word
}

func (b *wordbook) word(id uint32) (string, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if int(id) >= len(b.words) || b.words[id] == "" {
		return "", false
	}
	return b.words[id], true
}
