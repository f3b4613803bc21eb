package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The last good bundle of a server is kept as it was sent, so that its signature is verified
// again when it is read: who can write to the folder cannot make policy.

// keptFile is where a source's bundle is kept. A name that points to another address is
// another bundle.
func keptFile(s Source) string { return s.place() + ".tar.gz" }

// keep writes a bundle that is in force. A crash leaves the one before or this one.
func (s *Set) keep(b *Bundle) error {
	if s.Dir == "" || b.raw == nil || b.fromDisk {
		return nil
	}
	return writeWhole(s.Dir, keptFile(b.source), b.raw, s.create)
}

// temporary is a file that is not in its place yet.
type temporary interface {
	io.Writer
	Name() string
	Sync() error
	Close() error
}

// onDisk makes one that only its owner reads.
func onDisk(dir string) (temporary, error) { return os.CreateTemp(dir, ".new-*") }

// writeWhole puts a file in place: a crash, or a full disk, leaves the one before or this one.
// create makes the file that is written to first; nil = onDisk.
func writeWhole(dir, name string, text []byte, create func(dir string) (temporary, error)) (err error) {
	if create == nil {
		create = onDisk
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := create(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if at := new(os.PathError); errors.As(err, &at) { // the file that it was to be, whatever this one is called
			err = fmt.Errorf("%s %s: %w", at.Op, filepath.Join(dir, name), at.Err)
		}
		err = errors.Join(err, os.Remove(f.Name()))
	}()
	if _, err = f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// kept reads the last good bundle of a source, with everything that is asked of a new one.
func kept(ctx context.Context, dir string, s Source) (*Bundle, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	f, err := os.Open(filepath.Join(dir, keptFile(s)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := readLimited(f, maxDownload)
	if err != nil {
		return nil, err
	}
	b, err := unpack(ctx, s, raw)
	if err != nil {
		return nil, err
	}
	b.fromDisk = true
	return b, nil
}
