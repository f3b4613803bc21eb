package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrUnavailable: the ledger can take no record: storage is away and the spool is
	// full, or the queue stayed full. The caller is answered 503 storage_unavailable.
	ErrUnavailable = errors.New("ledger: cannot take a record")
	// ErrCancelled: the wait for the ledger was given up by its caller.
	ErrCancelled = errors.New("ledger: waiting was cancelled")
	// ErrNotFound: the ledger has no request of that ID.
	ErrNotFound = errors.New("ledger: no such request")
	// ErrClosed: the ledger was closed.
	ErrClosed = errors.New("ledger: closed")
)

// Durability says when an attempt counts as opened.
type Durability uint8

// The durabilities.
const (
	GroupCommit Durability = iota // queued, and committed at most 20 ms later
	Sync                          // committed
)

// Options say how a ledger writes. The zero value of each but DB is usable.
type Options struct {
	DB         *storage.DB
	Durability Durability
	Retention  time.Duration // requests older than this are deleted; 0: kept
	MaxSize    int64         // bytes of the database; the oldest go when it is larger; 0: no limit
	SpoolPath  string        // the file that takes records while storage is away; "": none
	SpoolLimit int64         // bytes; default 1 GiB
	QueueLimit int           // records waiting for the writer; default 16384
	MaxWait    time.Duration // how long OpenAttempt waits for a full queue; default 10 s
	Now        func() time.Time
}

// Ledger keeps the records. All methods may be called from any goroutine; a Record
// belongs to one goroutine at a time.
type Ledger struct{}

// Open starts the ledger on the database: it loads what an earlier process left in the
// spool, closes every attempt left open as unknown and its request as interrupted, and
// starts the writer. ctx bounds the start only.
func Open(ctx context.Context, o Options) (*Ledger, error) { panic("skeleton") }

// Close writes what is queued and stops. Records still open stay open in the database:
// the next start closes them as interrupted. ctx bounds the waiting.
func (l *Ledger) Close(ctx context.Context) error { panic("skeleton") }

// Acquire returns an empty record.
func (l *Ledger) Acquire() *Record { panic("skeleton") }

// Discard gives back a record of which no attempt was opened and nothing is to be kept.
func (l *Ledger) Discard(r *Record) { panic("skeleton") }

// OpenAttempt records attempt n of r, and with the first also the request, before the
// attempt's first byte may leave. With group_commit it returns once the record is queued,
// with sync once it is committed. While the queue is full it waits, at most MaxWait, or
// until cancel (which may be nil) is closed. Errors: ErrUnavailable, ErrCancelled,
// ErrClosed; then the attempt must not be made and is taken off the record.
//
// The ledger copies what it needs: r stays with its caller.
func (l *Ledger) OpenAttempt(r *Record, n int, cancel <-chan struct{}) error { panic("skeleton") }

// CloseAttempt records how attempt n ended: its End must be set. It never blocks.
// Closing twice, or an attempt that was not opened, is a fault of the caller: it is
// counted, and panics in tests (see [PanicOnMisuse]).
func (l *Ledger) CloseAttempt(r *Record, n int) { panic("skeleton") }

// CloseRequest records how the request ended and takes r over. A request without any
// attempt gets its row here. Terminal must be set; an attempt still open is closed as
// unknown and counted as a fault of the caller, as is closing twice.
func (l *Ledger) CloseRequest(r *Record) { panic("skeleton") }

// SetOutcome keeps what became of the task of a request that key asked for.
// ErrNotFound where there is none of that ID and key.
func (l *Ledger) SetOutcome(ctx context.Context, key, id string, o TaskOutcome) error {
	panic("skeleton")
}

// Flush returns when everything queued before the call is committed or spooled.
func (l *Ledger) Flush(ctx context.Context) error { panic("skeleton") }

// Status is the ledger's condition.
type Status struct {
	Queued       int    // records waiting for the writer
	Degraded     bool   // storage is away: records go to the spool
	Reason       string // why it is degraded
	SpoolBytes   int64
	Refusing     bool   // the spool is full too
	Written      uint64 // rows written
	Commits      uint64
	Failures     uint64 // commits that failed
	Misuse       uint64 // records closed twice, or never opened
	Deleted      uint64 // requests deleted by retention and size
	LastCommitAt time.Time
}

// Status returns the ledger's condition.
func (l *Ledger) Status() Status { panic("skeleton") }

// PanicOnMisuse makes a double close panic instead of only being counted. For tests.
func (l *Ledger) PanicOnMisuse() { panic("skeleton") }

// NewID makes a request ID for a request received at t: "req_" and a ULID of that
// millisecond. IDs made here cost the ledger no extra index entry.
func NewID(t time.Time) string { panic("skeleton") }
