// Package key owns the callers' keys: finding one by what a caller presented, in a time that
// says nothing about any key, and what it may ask for.
//
// It keeps digests only, never a key. It must not count requests or know groups beyond their
// names.
package key

// Key is one caller's key.
type Key struct {
	ID      string // of a key made at run time, else ""
	Name    string
	Groups  []string // names, in order
	Budget  string
	Budgets []string
	RPM     int // 0 = no limit
	Labels  map[string]string
}

// MayCall reports whether the key's globs match the model's public name.
func (k *Key) MayCall(model string) bool { panic("skeleton") }

// MayName reports whether the caller may name the budget: its own default it always may.
func (k *Key) MayName(budget string) bool { panic("skeleton") }

// Table finds keys.
type Table struct{}

// Find returns the key that was presented, nil if there is none. It allocates nothing.
func (t *Table) Find(presented []byte) *Key { panic("skeleton") }
