package storage

import (
	"context"
	"errors"
	"time"
)

// Format is the version of the tables that this build writes.
const Format = 1

// Errors that callers tell apart with errors.Is.
var (
	// ErrNewerFormat: the file was written by a newer version of the gateway.
	ErrNewerFormat = errors.New("storage: the database has a newer format than this version of interlock knows")
	// ErrCorrupt: the file is not a database, or its integrity check failed.
	ErrCorrupt = errors.New("storage: the database is damaged")
	// ErrNotFound: no row of that name.
	ErrNotFound = errors.New("storage: not found")
	// ErrReadOnly: a change was asked of a handle that was opened for reading.
	ErrReadOnly = errors.New("storage: opened read-only")
	// ErrNotBuilt: the URL is valid, its kind of storage is not built yet.
	ErrNotBuilt = errors.New("storage: not built yet")
)

// Options say how to open the database. The zero value of each but URL is usable.
type Options struct {
	URL         string        // sqlite:PATH
	ReadOnly    bool          // another process may be writing
	Sync        bool          // a commit survives a power cut, not only the end of the process
	BusyTimeout time.Duration // how long a writer waits for another process's lock; default 1 s
	Readers     int           // size of the read pool; default 4
}

// DB is one open database. All methods may be called from any goroutine.
type DB struct{}

// Open opens the database that the URL names, creating it unless it is opened read-only,
// checks it and migrates it. Errors name the URL and wrap the causes above.
func Open(ctx context.Context, o Options) (*DB, error) { panic("skeleton") }

// Close ends all use of the database. It is safe to call it more than once.
func (db *DB) Close() error { panic("skeleton") }
