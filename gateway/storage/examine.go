package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Examine finds what Open would find wrong with the file that the URL names, as far as that
// can be told without locking, making or changing anything: a gateway may be running on it.
// The causes are Open's.
func Examine(url string) error {
	path, err := pathOf(url)
	if err != nil {
		return err
	}
	for _, suffix := range [...]string{"", ".lock", "-wal", "-shm"} {
		if err := Writable(path + suffix); err != nil {
			return err
		}
	}
	if err := peek(path); err != nil {
		return err
	}
	format, err := formatOf(path)
	if err != nil {
		return err
	}
	if format > Format {
		return newer(int64(format))
	}
	return nil
}

// Writable says why the file of that path could not be written, or, where there is none, made
// with the folders that lead to it. It touches nothing.
func Writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case err == nil:
		return named(path, access(path, false))
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		case err == nil:
			return named(dir, access(dir, true))
		case dir == filepath.Dir(dir): // there is nothing above it
			return err
		}
	}
}

func named(path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// formatOf reads the format from the file, or from the log beside it where the latest change
// of the first page is there still (https://sqlite.org/fileformat2.html#the_write_ahead_log).
// Of a file that is not there the format is 0.
func formatOf(path string) (uint32, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // reading only
	const versionAt = 60
	var version [4]byte
	if _, err := f.ReadAt(version[:], versionAt); err != nil {
		return 0, nil // empty: peek has refused whatever else is that short
	}
	format := binary.BigEndian.Uint32(version[:])
	log, err := os.Open(path + "-wal")
	if err != nil {
		return format, nil // no log
	}
	defer log.Close() //nolint:errcheck // reading only
	var head [32]byte
	if _, err := io.ReadFull(log, head[:]); err != nil {
		return format, nil
	}
	const frameHead = 24
	size := int64(binary.BigEndian.Uint32(head[8:]))
	pending := format
	for at := int64(len(head)); ; at += frameHead + size {
		var frame [frameHead]byte
		if _, err := log.ReadAt(frame[:], at); err != nil || size == 0 || [8]byte(frame[8:16]) != [8]byte(head[16:24]) {
			return format, nil // the end, or what an earlier round has left
		}
		if binary.BigEndian.Uint32(frame[:]) == 1 {
			if _, err := log.ReadAt(version[:], at+frameHead+versionAt); err != nil {
				return format, nil
			}
			pending = binary.BigEndian.Uint32(version[:])
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // a commit
			format = pending
		}
	}
}

func newer(format int64) error {
	return fmt.Errorf("%w (it has %d, this version knows up to %d)", ErrNewerFormat, format, Format)
}
