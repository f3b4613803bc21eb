package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
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
	// ErrMisuse: an attempt was opened out of order, or twice.
	ErrMisuse = errors.New("ledger: attempt opened out of order")
)

// Durability says when an attempt counts as opened.
type Durability uint8

// The durabilities.
const (
	GroupCommit Durability = iota // queued, and committed at most 20 ms later
	Sync                          // committed
)

// ParseDurability finds the durability with the word that the config uses.
func ParseDurability(s string) (Durability, bool) {
	switch s {
	case "group_commit":
		return GroupCommit, true
	case "sync":
		return Sync, true
	}
	return 0, false
}

// Options say how a ledger writes. The zero value of each but DB is usable.
type Options struct {
	DB         *storage.DB
	Durability Durability
	Retention  time.Duration    // requests older than this are deleted; 0: kept
	MaxSize    int64            // bytes of the database; the oldest go when it is larger; 0: no limit
	SpoolPath  string           // the file that takes records while storage is away; "": none
	SpoolLimit int64            // bytes; default 1 GiB
	QueueLimit int              // records waiting for the writer; default 16384
	MaxWait    time.Duration    // how long OpenAttempt waits for a full queue; default 10 s
	Now        func() time.Time // called from several goroutines
}

const (
	defaultSpoolLimit = 1 << 30
	defaultQueueLimit = 1 << 14
	defaultMaxWait    = 10 * time.Second
)

// Ledger keeps the records. All methods may be called from any goroutine; a Record
// belongs to one goroutine at a time.
type Ledger struct {
	db         *storage.DB
	durability Durability
	retention  time.Duration
	maxSize    int64
	maxWait    time.Duration
	shardLimit int
	now        func() time.Time
	book       *wordbook
	reader     *Reader

	shards     []shard
	wake       chan struct{} // something was queued
	urgent     chan struct{} // do not wait for more
	stop       chan struct{} // closed by Close
	stopOnce   sync.Once
	ended      chan struct{} // closed when the writer has stopped
	background sync.WaitGroup

	flushMu sync.Mutex
	flushes []chan struct{} // closed when what was queued before them is written

	records   sync.Pool
	snapshots sync.Pool
	strict    atomic.Bool // PanicOnMisuse

	queued     atomic.Int64
	refusing   atomic.Bool
	spoolBytes atomic.Int64
	written    atomic.Uint64
	commits    atomic.Uint64
	failures   atomic.Uint64
	misuse     atomic.Uint64
	lost       atomic.Uint64
	lostWhy    atomic.Pointer[string]
	deleted    atomic.Uint64
	lastCommit atomic.Int64
	away       atomic.Pointer[string] // why storage is away; nil: it is not

	w          writer // the writer's goroutine's own
	textsSwept int64  // the sweep's own: the day it last looked at the texts
}

// Open starts the ledger on the database: it loads what an earlier process left in the
// spool, closes every attempt left open as unknown and its request as interrupted, and
// starts the writer. ctx bounds the start only.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	if o.DB == nil || o.DB.ReadOnly() {
		return nil, fmt.Errorf("ledger: %w", storage.ErrReadOnly)
	}
	if o.SpoolLimit <= 0 {
		o.SpoolLimit = defaultSpoolLimit
	}
	if o.QueueLimit <= 0 {
		o.QueueLimit = defaultQueueLimit
	}
	if o.MaxWait <= 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Ledger{
		db: o.DB, durability: o.Durability, retention: o.Retention, maxSize: o.MaxSize, maxWait: o.MaxWait, now: o.Now,
		book: &wordbook{}, shards: newShards(o.QueueLimit),
		wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	l.shardLimit = (o.QueueLimit + len(l.shards) - 1) / len(l.shards)
	l.records.New = func() any { return new(Record) }
	l.snapshots.New = func() any { return new(Record) }
	l.reader = &Reader{db: o.DB, book: l.book, flush: l.Flush}
	if err := l.w.start(ctx, l, o); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l.background.Go(l.write)
	if l.retention > 0 || l.maxSize > 0 {
		l.background.Go(l.sweep)
	}
	return l, nil
}

// Close writes what is queued and stops. Records still open stay open in the database:
// the next start closes them as interrupted. ctx bounds the waiting; the database may be
// closed only after Close has returned nil.
func (l *Ledger) Close(ctx context.Context) error {
	l.stopOnce.Do(func() { close(l.stop) })
	done := make(chan struct{})
	go func() {
		l.background.Wait()
		close(done)
	}()
	select {
	case <-done:
		return l.w.closed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Acquire returns an empty record.
func (l *Ledger) Acquire() *Record {
	r := l.records.Get().(*Record)
	r.life = held
	if r.row == nil {
		r.row = new(row)
	}
	r.shard = &l.shards[rand.IntN(len(l.shards))]
	return r
}

// Discard gives back a record of which no attempt was opened and nothing is to be kept.
func (l *Ledger) Discard(r *Record) {
	if r.opened > 0 || !atomic.CompareAndSwapUint32(&r.life, held, closing) {
		l.misused("a record was discarded that was opened or closed")
		return
	}
	l.recycle(r)
}

func (l *Ledger) recycle(r *Record) {
	if l.strict.Load() {
		return // never used again, so that a late use is found
	}
	r.clear()
	l.records.Put(r)
}

func (l *Ledger) recycleSnapshot(r *Record) {
	r.clear()
	l.snapshots.Put(r)
}

// OpenAttempt records attempt n of r, and with the first also the request, before the
// attempt's first byte may leave. With group_commit it returns once the record is queued,
// with sync once it is committed. While the queue is full it waits, at most MaxWait, or
// until cancel (which may be nil) is closed. Errors: ErrUnavailable, ErrCancelled,
// ErrClosed, ErrMisuse; then the attempt must not be made and is taken off the record.
//
// The ledger copies what it needs: r stays with its caller.
func (l *Ledger) OpenAttempt(r *Record, n int, cancel <-chan struct{}) error {
	if n != len(r.Attempts) || n != r.opened+1 || atomic.LoadUint32(&r.life) != held {
		l.misused("an attempt was opened out of order")
		return ErrMisuse
	}
	a := &r.Attempts[n-1]
	err := ErrUnavailable
	if !l.refusing.Load() {
		if a.OpenedAt.IsZero() {
			a.OpenedAt = l.now()
		}
		a.Number, a.End, a.state = n, failure.Open, attemptOpen
		err = l.queueOpen(r, cancel)
	}
	if err != nil {
		r.Attempts[n-1] = Attempt{}
		r.Attempts = r.Attempts[:n-1]
		return err
	}
	r.opened = n
	return nil
}

func (l *Ledger) queueOpen(r *Record, cancel <-chan struct{}) error {
	e := l.snapshot(r)
	t, err := l.push(e, true, l.durability == Sync, cancel)
	if err != nil {
		l.recycleSnapshot(e.rec)
		return err
	}
	if t == nil {
		return nil
	}
	<-t.done // the writer always answers: with the commit, the spool, or a refusal
	return t.err
}

func (l *Ledger) snapshot(r *Record) entry {
	s := l.snapshots.Get().(*Record)
	s.copyFrom(r)
	return entry{rec: s, origin: r}
}

// CloseAttempt records how attempt n ended: its End must be set. It never blocks.
// Closing twice, or an attempt that was not opened, is a fault of the caller: it is
// counted, and panics in tests (see [Ledger.PanicOnMisuse]).
func (l *Ledger) CloseAttempt(r *Record, n int) {
	if n < 1 || n > r.opened || atomic.LoadUint32(&r.life) != held || r.Attempts[n-1].state != attemptOpen {
		l.misused("an attempt was closed that is not open")
		return
	}
	a := &r.Attempts[n-1]
	l.closeAttempt(a)
	// After anything but a failure the request ends at once, and with it goes the rest.
	if a.End == failure.EndFailed {
		e := l.snapshot(r)
		if _, err := l.push(e, false, false, nil); err != nil {
			l.recycleSnapshot(e.rec) // closed: the next start says interrupted
		}
	}
}

func (l *Ledger) closeAttempt(a *Attempt) {
	if a.End == failure.Open {
		l.misused("an attempt was closed without an end")
		a.End, a.Class = failure.EndUnknown, failure.Unknown
	}
	if !a.Closed.Known {
		a.Closed = Some(l.now().Sub(a.OpenedAt))
	}
	a.state = attemptClosed
}

// CloseRequest records how the request ended and takes r over. A request without any
// attempt gets its row here, for which it may wait as OpenAttempt does; otherwise it
// never blocks. Terminal must be set; an attempt still open is closed as unknown and
// counted as a fault of the caller, as is closing twice.
func (l *Ledger) CloseRequest(r *Record) {
	if !atomic.CompareAndSwapUint32(&r.life, held, closing) {
		l.misused("a request was closed twice")
		return
	}
	if len(r.Attempts) > r.opened {
		l.misused("a request was closed with an attempt that was never opened")
		r.Attempts = r.Attempts[:r.opened]
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.state != attemptClosed {
			a.End, a.Class = failure.EndUnknown, failure.Unknown
			l.closeAttempt(a)
			l.misused("a request was closed with an open attempt")
		}
	}
	if r.Terminal == failure.Running {
		l.misused("a request was closed without a terminal reason")
		r.Terminal = failure.Interrupted
	}
	if r.FinishedAt.IsZero() {
		r.FinishedAt = l.now()
	}
	e := entry{rec: r, origin: r}
	if r.opened == 0 {
		// Nothing bounds how many of these there are but the queue. With the spool full
		// too, a denial goes unrecorded rather than filling the memory.
		if l.refusing.Load() {
			l.lose(ErrUnavailable)
			l.recycle(r)
			return
		}
		if _, err := l.push(e, true, false, nil); err == nil {
			return
		}
	}
	if _, err := l.push(e, false, false, nil); err != nil {
		l.lose(err)
	}
}

// PanicOnMisuse makes a double close panic instead of only being counted, and gives no
// record out twice. For tests.
func (l *Ledger) PanicOnMisuse() { l.strict.Store(true) }

func (l *Ledger) misused(what string) {
	l.misuse.Add(1)
	if l.strict.Load() {
		panic("ledger: " + what)
	}
}

func (l *Ledger) lose(err error) {
	why := err.Error()
	l.lostWhy.Store(&why)
	l.lost.Add(1)
}

// Flush returns when everything queued before the call is committed or spooled.
func (l *Ledger) Flush(ctx context.Context) error {
	c := make(chan struct{})
	l.flushMu.Lock()
	l.flushes = append(l.flushes, c)
	l.flushMu.Unlock()
	signal(l.wake)
	signal(l.urgent)
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.ended: // it has emptied the queue before
		return nil
	}
}

// Reader returns a reader that sees everything recorded before each of its calls, but for
// what waits in the spool while storage is away.
func (l *Ledger) Reader() *Reader { return l.reader }

// Status is the ledger's condition.
type Status struct {
	Queued       int    // records waiting for the writer
	Degraded     bool   // storage is away: records go to the spool
	Reason       string // why it is degraded
	SpoolBytes   int64
	Refusing     bool   // the spool is full too: attempts are refused
	Written      uint64 // states of requests written; a clean one takes one or two
	Commits      uint64
	Failures     uint64 // commits that failed
	Misuse       uint64 // records closed twice, or never opened
	Lost         uint64 // records that could never be written
	LostReason   string // why the last of them was lost
	Deleted      uint64 // requests deleted by retention and size
	LastCommitAt time.Time
}

// Status returns the ledger's condition.
func (l *Ledger) Status() Status {
	s := Status{
		Queued: int(max(0, l.queued.Load())), SpoolBytes: l.spoolBytes.Load(), Refusing: l.refusing.Load(),
		Written: l.written.Load(), Commits: l.commits.Load(), Failures: l.failures.Load(),
		Misuse: l.misuse.Load(), Lost: l.lost.Load(), Deleted: l.deleted.Load(),
	}
	if why := l.away.Load(); why != nil {
		s.Degraded, s.Reason = true, *why
	}
	if why := l.lostWhy.Load(); why != nil {
		s.LostReason = *why
	}
	if ns := l.lastCommit.Load(); ns != 0 {
		s.LastCommitAt = time.Unix(0, ns)
	}
	return s
}
