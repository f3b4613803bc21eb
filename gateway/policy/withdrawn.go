package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// withdrawnFile keeps what was rolled back, beside the last good bundles.
const withdrawnFile = "rolled-back.json"

// Withdrawn remembers the contents that were rolled back because their decisions kept timing
// out: one for each place that a bundle comes from, until that place has another content. It
// outlives a follower, and with a folder a restart, so that neither a reload nor a start brings
// back what was just taken out. Safe for concurrent use.
type Withdrawn struct {
	dir string // "": nothing is written

	mu sync.Mutex
	by map[string]withdrawal // by place
}

type withdrawal struct {
	Digest string `json:"digest"`
	ID     string `json:"id"`
}

// WithdrawnError says that a bundle is not taken because it was rolled back.
type WithdrawnError struct{ ID string }

func (e *WithdrawnError) Error() string {
	return fmt.Sprintf("rolled back: decisions of the revision %s kept timing out; it is not taken again until its content changes", e.ID)
}

// OpenWithdrawn reads what was rolled back before a restart from the folder of the last good
// bundles; "" is none. What cannot be read is an error, and nothing is remembered.
func OpenWithdrawn(dir string) (*Withdrawn, error) {
	w := &Withdrawn{dir: dir, by: map[string]withdrawal{}}
	if dir == "" {
		return w, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, withdrawnFile))
	if errors.Is(err, os.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w.by)
	}
	if err != nil {
		w.by = map[string]withdrawal{}
	}
	return w, err
}

// refuses returns a *WithdrawnError where the bundle's content was rolled back.
func (w *Withdrawn) refuses(b *Bundle) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if out, ok := w.by[b.source.place()]; ok && out.Digest == b.digest {
		return &WithdrawnError{out.ID}
	}
	return nil
}

// add remembers a bundle that is rolled back. The error is of writing it down: it holds until a
// restart all the same.
func (w *Withdrawn) add(b *Bundle) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[b.source.place()] = withdrawal{Digest: b.digest, ID: b.ID()}
	return w.write()
}

// settle forgets what a source's place had: its content is another one now.
func (w *Withdrawn) settle(s Source) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.by[s.place()]; !ok {
		return nil
	}
	delete(w.by, s.place())
	return w.write()
}

func (w *Withdrawn) write() error {
	if w.dir == "" {
		return nil
	}
	text, err := json.Marshal(w.by)
	if err != nil {
		return err
	}
	return writeWhole(w.dir, withdrawnFile, text, nil)
}
