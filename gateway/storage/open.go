package storage

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNewerFormat: the file was written by a newer version of the gateway.
	ErrNewerFormat = errors.New("the database has a newer format than this version of interlock knows")
	// ErrOlderFormat: the file needs a migration and was opened read-only.
	ErrOlderFormat = errors.New("the database has an older format and was opened read-only: start the gateway on it once")
	// ErrForeign: the file is a database of another program.
	ErrForeign = errors.New("the database was not made by interlock")
	// ErrCorrupt: the file is not a database, or its integrity check failed.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrInUse: another gateway process has the file.
	ErrInUse = errors.New("another gateway process uses this database")
	// ErrNotFound: no row of that name.
	ErrNotFound = errors.New("not found")
	// ErrReadOnly: a change was asked of a handle that was opened for reading.
	ErrReadOnly = errors.New("opened read-only")
	// ErrNotBuilt: the URL is valid, its kind of storage is not built yet.
	ErrNotBuilt = errors.New("not built yet: use sqlite:PATH")
	// ErrClosed: the database was closed.
	ErrClosed = errors.New("closed")
)

const (
	defaultBusyTimeout = time.Second
	defaultLockWait    = 5 * time.Second
	defaultReaders     = 4

	// A file up to this size is checked whole at the start; checking a larger one would
	// hold the start up for long, see [DB.Check].
	checkedAtStart = 16 << 20
)

// Options say how to open the database. The zero value of each but URL is usable.
type Options struct {
	URL         string        // sqlite:PATH
	ReadOnly    bool          // another process may be writing; nothing is created or migrated
	Sync        bool          // every commit survives a power cut, not only the end of the process
	BusyTimeout time.Duration // how long a writer waits for another process's lock; default 1 s
	LockWait    time.Duration // how long Open waits for another gateway to let the file go; default 5 s
	Readers     int           // size of the read pool; default 4
}

// DB is one open database. All methods may be called from any goroutine.
type DB struct {
	url    string
	path   string
	lock   *fileLock // nil when read-only
	write  *writer   // nil when read-only
	read   *sql.DB
	closed chan struct{}
}

// Open opens the database that the URL names, creating it and its directory unless it is
// opened read-only, checks it and migrates it. Errors name the URL and wrap the causes
// above.
func Open(ctx context.Context, o Options) (*DB, error) {
	db, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("storage %s: %w", redacted(o.URL), err)
	}
	return db, nil
}

func open(ctx context.Context, o Options) (_ *DB, err error) {
	path, err := pathOf(o.URL)
	if err != nil {
		return nil, err
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	if o.LockWait <= 0 {
		o.LockWait = defaultLockWait
	}
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	db := &DB{url: o.URL, path: path, closed: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	if o.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
	} else if err := db.openForWriting(ctx, o); err != nil {
		return nil, err
	}
	if err := db.openForReading(ctx, o); err != nil {
		return nil, err
	}
	return db, nil
}

func (db *DB) openForWriting(ctx context.Context, o Options) error {
	if err := os.MkdirAll(filepath.Dir(db.path), 0o750); err != nil {
		return err
	}
	lock, err := lockFile(ctx, db.path+".lock", o.LockWait)
	if err != nil {
		return err
	}
	db.lock = lock
	if err := peek(db.path); err != nil {
		return err
	}
	db.write = newWriter(dataSource(db.path, "rwc", o.BusyTimeout, writerPragmas(o.Sync)), o.Sync)
	if err := db.write.do(ctx, false, func(*Tx) error { return nil }); err != nil {
		return damaged(err)
	}
	if err := db.check(ctx); err != nil {
		return err
	}
	return db.migrate(ctx)
}

func (db *DB) openForReading(ctx context.Context, o Options) error {
	c, err := sqlite.NewConnector(dataSource(db.path, "ro", o.BusyTimeout, "query_only(1)"))
	if err != nil {
		return err
	}
	db.read = sql.OpenDB(c)
	db.read.SetMaxOpenConns(o.Readers)
	db.read.SetMaxIdleConns(o.Readers)
	format, mark, tables, err := db.identity(ctx)
	if err != nil {
		return damaged(err)
	}
	switch {
	case mark != fileMark && tables > 0:
		return ErrForeign
	case format > Format:
		return newer(int64(format))
	case format < Format:
		return ErrOlderFormat
	}
	return nil
}

func (db *DB) identity(ctx context.Context) (format, mark, tables int, err error) {
	err = db.read.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&format, &mark, &tables)
	return format, mark, tables, err
}

// Read returns the pool of read-only connections. It sees what was committed.
func (db *DB) Read() *sql.DB { return db.read }

// ReadOnly reports whether the handle can only read.
func (db *DB) ReadOnly() bool { return db.write == nil }

// Path returns the file.
func (db *DB) Path() string { return db.path }

// Close ends all use of the database. It is safe to call it more than once.
func (db *DB) Close() error {
	select {
	case <-db.closed:
		return nil
	default:
		close(db.closed)
	}
	var errs []error
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.release())
	}
	return errors.Join(errs...)
}

// Used returns the bytes that tables occupy: pages that deleted rows left free are not
// counted, for they are written again.
func (db *DB) Used(ctx context.Context) (int64, error) {
	var n int64
	err := db.read.QueryRowContext(ctx, `SELECT (p.page_count - f.freelist_count) * s.page_size
		FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`).Scan(&n)
	return n, err
}

// Check reads the whole database and returns ErrCorrupt where it is damaged. A large one
// takes minutes.
func (db *DB) Check(ctx context.Context) error {
	var verdict string
	if err := db.read.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return damaged(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrCorrupt, verdict)
	}
	return nil
}

func (db *DB) check(ctx context.Context) error {
	info, err := os.Stat(db.path)
	if err != nil {
		return err
	}
	if info.Size() > checkedAtStart {
		return nil
	}
	return damaged(db.write.do(ctx, false, func(tx *Tx) error {
		return tx.Each("PRAGMA quick_check(1)", func(row []any) error {
			if verdict, _ := row[0].(string); verdict != "ok" {
				return fmt.Errorf("%w: %v", ErrCorrupt, row[0])
			}
			return nil
		})
	}))
}

// peek refuses what is no database or somebody else's before a pragma changes it. Of a
// file of one page nothing is said: ours looks so until its first checkpoint.
func peek(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()    //nolint:errcheck // reading only
	var head [100]byte // https://sqlite.org/fileformat2.html#the_database_header
	switch _, err := io.ReadFull(f, head[:]); {
	case errors.Is(err, io.EOF): // empty: a new one
		return nil
	case err != nil || string(head[:16]) != "SQLite format 3\x00":
		return fmt.Errorf("%w: it does not begin like a SQLite database", ErrCorrupt)
	}
	pages, mark := binary.BigEndian.Uint32(head[28:]), binary.BigEndian.Uint32(head[68:])
	if pages > 1 && mark != fileMark {
		return ErrForeign
	}
	return nil
}

func (db *DB) migrate(ctx context.Context) error {
	return db.write.do(ctx, true, func(tx *Tx) error {
		format, mark, tables, err := int64(0), int64(0), int64(0), error(nil)
		for query, to := range map[string]*int64{
			"PRAGMA user_version": &format, "PRAGMA application_id": &mark, "SELECT count(*) FROM sqlite_schema": &tables,
		} {
			if *to, err = tx.Int(query); err != nil {
				return err
			}
		}
		if tables > 0 && mark != fileMark {
			return ErrForeign
		}
		if format > Format {
			return newer(format)
		}
		if format == Format {
			return nil
		}
		for _, script := range migrations[format:] {
			if err := tx.script(script); err != nil {
				return fmt.Errorf("migrating from format %d to %d: %w", format, Format, err)
			}
		}
		return tx.script(fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", Format, fileMark))
	})
}

func pathOf(u string) (string, error) {
	if strings.HasPrefix(u, "postgres://") || strings.HasPrefix(u, "postgresql://") {
		return "", ErrNotBuilt
	}
	path, ok := strings.CutPrefix(u, "sqlite:")
	if !ok || path == "" || strings.HasPrefix(path, ":") {
		return "", errors.New("not a storage URL: allowed is sqlite:PATH")
	}
	return filepath.Abs(path)
}

// redacted hides what a URL may carry before its host.
func redacted(u string) string {
	if scheme, rest, ok := strings.Cut(u, "://"); ok {
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			return scheme + "://***" + rest[i:]
		}
	}
	return u
}

func dataSource(path, mode string, busy time.Duration, pragmas ...string) string {
	q := url.Values{"mode": {mode}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()))
	for _, p := range pragmas {
		for one := range strings.SplitSeq(p, ";") {
			q.Add("_pragma", one)
		}
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// writerPragmas: with synchronous=NORMAL a commit survives the end of the process, with
// FULL also a power cut. The cache holds the pages that updates come back to.
func writerPragmas(sync bool) string {
	level := "synchronous(normal)"
	if sync {
		level = "synchronous(full)"
	}
	return "journal_mode(wal);" + level + ";cache_size(-16384);temp_store(memory);journal_size_limit(67108864)"
}
