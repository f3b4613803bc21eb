// Package sink owns where logs and reports go: a file that others may move away, a server that may
// be away. It must not know what they say.
package sink

import (
	"fmt"
	"os"
	"time"
)

// lookEvery is how soon a file that was moved away is noticed.
const lookEvery = time.Second

// File is a log file that others may move away: the next lines go to a new one of its name.
type File struct {
	path    string
	out     *os.File // nil: it could not be opened again
	looked  time.Time
	failing bool
}

// OpenFile opens a file, or makes it.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	return f, f.open()
}

func (f *File) open() error {
	out, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 -- the operator's
	if err != nil {
		return err
	}
	f.out = out
	return nil
}

// Write appends whole lines.
func (f *File) Write(now time.Time, lines []byte) error {
	if f.out != nil && now.Sub(f.looked) >= lookEvery {
		f.looked = now
		if f.moved() {
			_ = f.out.Close() // what is in it has been written
			f.out = nil
		}
	}
	if f.out == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	n, err := f.out.Write(lines)
	if err != nil {
		return fmt.Errorf("%d of %d bytes: %w", n, len(lines), err)
	}
	return nil
}

// moved reports whether the open file is no longer the one of its name.
func (f *File) moved() bool {
	open, err := f.out.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(f.path)
	return err != nil || !os.SameFile(open, named)
}

// Fails notes whether writing fails and reports whether that is news.
func (f *File) Fails(now bool) bool {
	before := f.failing
	f.failing = now
	return before != now
}

// Close ends it.
func (f *File) Close() error {
	if f.out == nil {
		return nil
	}
	return f.out.Close()
}
