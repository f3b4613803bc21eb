package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("LEDGER_TEST_CHILD"); dir != "" {
		recordUntilKilled(dir, os.Getenv("LEDGER_TEST_SYNC") != "")
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second // longer than any wait in these tests, so that a hang fails

type fixture struct {
	*Ledger
	t   testing.TB
	dir string
	db  *storage.DB
}

// start opens a ledger in dir. Stop it with stop, or leave that to the test's end.
func start(t testing.TB, dir string, o Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := storage.Open(ctx, storage.Options{
		URL: "sqlite:" + filepath.Join(dir, "l.db"), Sync: o.Durability == Sync, BusyTimeout: 20 * time.Millisecond,
	})
	require.NoError(t, err)
	o.DB = db
	l, err := Open(ctx, o)
	require.NoError(t, err)
	l.PanicOnMisuse()
	f := &fixture{l, t, dir, db}
	t.Cleanup(f.stop)
	return f
}

func (f *fixture) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(f.t, f.Close(ctx))
	require.NoError(f.t, f.db.Close())
}

func (f *fixture) show(id string) *Record {
	f.t.Helper()
	r, err := f.Reader().Show(f.t.Context(), id)
	require.NoError(f.t, err)
	return r
}

func (f *fixture) count(table string) int {
	f.t.Helper()
	require.NoError(f.t, f.Flush(f.t.Context()))
	var n int
	require.NoError(f.t, f.db.Read().QueryRow("SELECT count(*) FROM "+table).Scan(&n))
	return n
}

// open makes a request with one open attempt.
func (f *fixture) open(at time.Time, change ...func(*Record)) *Record {
	f.t.Helper()
	r := f.Acquire()
	fillRequest(r, at)
	for _, c := range change {
		c(r)
	}
	require.NoError(f.t, f.OpenAttempt(r, 1, nil))
	return r
}

func (f *fixture) succeed(r *Record) string {
	id := r.ID
	fillAnswer(r)
	f.CloseAttempt(r, len(r.Attempts))
	f.CloseRequest(r)
	return id
}

func fail(a *Attempt, c failure.Class) {
	a.Class, a.Phase, a.End, a.Status = c, Some(failure.BeforeHeaders), failure.EndFailed, 503
	a.CostUSD, a.Billable = Some(0.0), BillableNo
}

// fallBack fails the open attempt and opens another elsewhere.
func (f *fixture) fallBack(r *Record, c failure.Class) {
	f.t.Helper()
	fail(r.Attempt(len(r.Attempts)), c)
	f.CloseAttempt(r, len(r.Attempts))
	a := r.NextAttempt()
	a.Cause, a.Group, a.Channel, a.Provider = failure.SameContractFallback, "backup", "other-eu", "acme"
	a.Model, a.UpstreamModel, a.Reason = "gpt-5-mini", "gpt-5-mini", "untried_equal_route"
	require.NoError(f.t, f.OpenAttempt(r, len(r.Attempts), nil))
}

// away locks the database for everybody else until the function it returns is called.
func (f *fixture) away() (back func()) {
	f.t.Helper()
	other, err := sql.Open("sqlite", filepath.Join(f.dir, "l.db")+"?_pragma=busy_timeout(10000)")
	require.NoError(f.t, err)
	conn, err := other.Conn(context.Background())
	require.NoError(f.t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	require.NoError(f.t, err)
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		require.NoError(f.t, err)
		require.NoError(f.t, conn.Close())
		require.NoError(f.t, other.Close())
	}
}

func (f *fixture) eventually(what string, is func(Status) bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return is(f.Status()) }, patience, 5*time.Millisecond, what)
}

func TestARequestIsSeenAtEveryStage(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	_, err := f.Reader().Show(t.Context(), NewID(time.Now()))
	require.ErrorIs(t, err, ErrNotFound)

	r := f.open(time.Now())
	id := r.ID
	seen := f.show(id)
	require.Equal(t, failure.Running, seen.Terminal)
	require.Len(t, seen.Attempts, 1)
	require.Equal(t, failure.Open, seen.Attempts[0].End)
	require.False(t, seen.Attempts[0].OpenedAt.IsZero())

	fail(r.Attempt(1), failure.Overloaded)
	f.CloseAttempt(r, 1)
	seen = f.show(id)
	require.Equal(t, failure.Overloaded, seen.Attempts[0].Class)
	require.True(t, seen.Attempts[0].Closed.Known)
	require.Equal(t, failure.Running, seen.Terminal)

	a := r.NextAttempt()
	a.Cause, a.Group, a.Channel = failure.SameContractFallback, "backup", "b"
	require.NoError(t, f.OpenAttempt(r, 2, nil))
	seen = f.show(id)
	require.Len(t, seen.Attempts, 2)
	require.Equal(t, failure.Open, seen.Attempts[1].End)

	f.succeed(r)
	seen = f.show(id)
	require.Equal(t, failure.Success, seen.Terminal)
	require.Equal(t, failure.EndFailed, seen.Attempts[0].End)
	require.Equal(t, failure.EndSuccess, seen.Attempts[1].End)
	require.Equal(t, 1, f.count("requests"))
	require.Equal(t, 1, f.count("attempts"))
}

func TestEveryFactComesBack(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	want := fullRecord(at)
	r := f.Acquire()
	fillFull(r, at)
	for n := range want.Attempts {
		a := want.Attempts[n]
		r.Attempts = append(r.Attempts[:n], a)
		require.NoError(t, f.OpenAttempt(r, n+1, nil))
		r.Attempts[n].End = a.End
		f.CloseAttempt(r, n+1)
	}
	f.CloseRequest(r)
	got := f.show(want.ID)
	require.Equal(t, string(want.AppendJSON(nil, true)), string(got.AppendJSON(nil, true)))
	require.Equal(t, want.ToolCalls, got.ToolCalls)
	require.Equal(t, string(want.AppendTimeline(nil)), string(got.AppendTimeline(nil)))
}

func TestACleanRequestIsOneRow(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	now := time.Now()
	for range 100 {
		f.succeed(f.open(now))
	}
	require.Equal(t, 100, f.count("requests"))
	for _, table := range []string{"attempts", "troubled", "actions", "names"} {
		require.Zero(t, f.count(table), table)
	}
	require.Equal(t, 2, f.count("texts"), "each distinct input and output is kept once")
}

func TestADeniedRequestHasARow(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	r := f.Acquire()
	fillRequest(r, time.Now())
	id := r.ID
	r.Attempts = r.Attempts[:0]
	r.Terminal, r.Status = failure.PolicyStop, 403
	f.CloseRequest(r)
	got := f.show(id)
	require.Empty(t, got.Attempts)
	require.Equal(t, failure.PolicyStop, got.Terminal)
	require.Contains(t, string(got.AppendJSON(nil, false)), `"attempts":[]`)
	require.Contains(t, string(got.AppendTimeline(nil)), "no attempt was made")
}

func TestMisuseIsFound(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	r := f.open(time.Now())
	require.Panics(t, func() { _ = f.OpenAttempt(r, 1, nil) }, "opened twice")
	require.Panics(t, func() { _ = f.OpenAttempt(r, 2, nil) }, "not there")
	require.Panics(t, func() { f.CloseAttempt(r, 2) }, "not there")
	require.Panics(t, func() { f.Discard(r) }, "opened")
	fillAnswer(r)
	f.CloseAttempt(r, 1)
	require.Panics(t, func() { f.CloseAttempt(r, 1) }, "closed twice")
	f.CloseRequest(r)
	require.Panics(t, func() { f.CloseRequest(r) }, "closed twice")
	require.Panics(t, func() { f.CloseAttempt(r, 1) }, "after the request")
	require.Panics(t, func() { _ = f.OpenAttempt(r, 2, nil) }, "after the request")
	require.EqualValues(t, 8, f.Status().Misuse)

	f.strict.Store(false)
	left := f.open(time.Now())
	id := left.ID
	left.Terminal = failure.Exhausted
	f.CloseRequest(left) // its attempt is still open
	require.Equal(t, failure.EndUnknown, f.show(id).Attempts[0].End)
	f.Discard(f.Acquire())
}

func TestCrashLeavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{})
	now := time.Now()
	running := f.open(now).ID
	r := f.open(now.Add(time.Second))
	f.fallBack(r, failure.ServerError)
	second := r.ID
	r = f.open(now.Add(2 * time.Second))
	fail(r.Attempt(1), failure.Network)
	f.CloseAttempt(r, 1)
	waiting := r.ID
	done := f.succeed(f.open(now.Add(-time.Hour)))
	f.stop() // the records above are never closed

	f = start(t, dir, Options{})
	for id, ends := range map[string][]failure.End{
		running: {failure.EndUnknown}, second: {failure.EndFailed, failure.EndUnknown}, waiting: {failure.EndFailed},
	} {
		got := f.show(id)
		require.Equal(t, failure.Interrupted, got.Terminal)
		require.Len(t, got.Attempts, len(ends))
		for i, end := range ends {
			require.Equal(t, end, got.Attempts[i].End)
			if end == failure.EndUnknown {
				require.Equal(t, failure.Unknown, got.Attempts[i].Class)
				require.False(t, got.Attempts[i].Closed.Known)
			}
		}
	}
	require.Equal(t, failure.Success, f.show(done).Terminal)
	p, err := f.Reader().List(t.Context(), Filter{Terminal: Some(failure.Interrupted)})
	require.NoError(t, err)
	require.Len(t, p.Requests, 3)
	p, err = f.Reader().List(t.Context(), Filter{Terminal: Some(failure.Running)})
	require.NoError(t, err)
	require.Empty(t, p.Requests)
}

// An open request is found at the next start however long it has been open, and however
// many came after it.
func TestTheFloorStaysBelowEveryOpenRequest(t *testing.T) {
	dir := t.TempDir()
	var ahead atomic.Int64
	begin := time.Now().Add(-time.Hour)
	now := func() time.Time { return begin.Add(time.Duration(ahead.Load())) }
	f := start(t, dir, Options{Now: now})
	old := f.open(now()).ID
	for range 50 {
		ahead.Add(int64(time.Minute))
		f.succeed(f.open(now()))
		require.NoError(t, f.Flush(t.Context()))
	}
	late := f.open(now().Add(-30 * time.Minute)).ID // received long before it was opened
	f.stop()
	f = start(t, dir, Options{Now: now})
	require.Equal(t, failure.Interrupted, f.show(old).Terminal)
	require.Equal(t, failure.Interrupted, f.show(late).Terminal)
}

func TestIDsMadeElsewhereAreFound(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	at := time.Now()
	ids := []string{"req_1", "", "req_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x y/ü", NewID(at)}
	twin := NewID(at)
	// Another ID that leads to the same row.
	ids = append(ids, twin, twin[:len(twin)-1]+map[bool]string{true: "0", false: "1"}[twin[len(twin)-1] != '0'])
	for i, id := range ids {
		r := f.open(at, func(r *Record) { r.ID, r.UserAction, r.CorrelationID = id, "", fmt.Sprint(i) })
		require.NoError(t, f.Flush(t.Context()))
		f.succeed(r)
	}
	for i, id := range ids {
		got := f.show(id)
		require.Equal(t, id, got.ID)
		require.Equal(t, fmt.Sprint(i), got.CorrelationID)
	}
	require.Equal(t, len(ids), f.count("requests"))
	require.Equal(t, 5, f.count("names"))
}

func TestNewIDLeadsToItsPlace(t *testing.T) {
	at := time.Now()
	seen := map[int64]bool{}
	for range 100_000 {
		id := NewID(at)
		seq, ok := placeOf(id)
		require.True(t, ok, id)
		require.Equal(t, at.UnixMilli(), seq>>placeBits)
		require.False(t, seen[seq], "two of one millisecond have the same place")
		seen[seq] = true
	}
	for _, bad := range []string{"", "req_", "req_01arz3ndektsv4rrffq69g5fav", "xxx_01ARZ3NDEKTSV4RRFFQ69G5FAV", "req_01ARZ3NDEKTSV4RRFFQ69G5FA!", "req_Z1ARZ3NDEKTSV4RRFFQ69G5FAV"} {
		_, ok := placeOf(bad)
		require.False(t, ok, bad)
	}
}

func TestKeepCopies(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	r := f.Acquire()
	buf := []byte("first")
	a := r.Keep(buf)
	copy(buf, "XXXXX")
	long := strings.Repeat("z", 2000)
	b := r.Keep([]byte(long))
	c := r.Keep([]byte("third"))
	require.Equal(t, []string{"first", long, "third", ""}, []string{a, b, c, r.Keep(nil)})
	f.Discard(r)
}

func TestOpenRefusesAReader(t *testing.T) {
	_, err := Open(t.Context(), Options{})
	require.ErrorIs(t, err, storage.ErrReadOnly)
}

func TestSyncIsCommittedWhenItReturns(t *testing.T) {
	f := start(t, t.TempDir(), Options{Durability: Sync})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				r := f.Acquire()
				fillRequest(r, time.Now())
				id := r.ID
				if err := f.OpenAttempt(r, 1, nil); err != nil {
					t.Error(err)
					return
				}
				// Another process would see it: nothing is flushed for this reader.
				if _, err := NewReader(f.db).Show(context.Background(), id); err != nil {
					t.Error(err)
				}
				f.succeed(r)
			}
		})
	}
	all.Wait()
}

func TestAFullQueueSlowsAndCanBeLeft(t *testing.T) {
	f := start(t, t.TempDir(), Options{QueueLimit: 1, MaxWait: time.Minute})
	release, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = f.db.Update(context.Background(), func(*storage.Tx) error {
			close(held)
			<-release
			return nil
		})
	})
	<-held
	first := f.open(time.Now()) // on its way to the writer, which waits for the turn
	require.Eventually(t, func() bool {
		s := &f.shards[0]
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.entries) == 0
	}, patience, time.Millisecond)
	second := f.open(time.Now()) // fills the queue

	third := f.Acquire()
	fillRequest(third, time.Now())
	cancel := make(chan struct{})
	result := make(chan error, 1)
	go func() { result <- f.OpenAttempt(third, 1, cancel) }()
	select {
	case err := <-result:
		t.Fatal("a full queue did not hold the request", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(cancel)
	require.ErrorIs(t, <-result, ErrCancelled)
	require.Empty(t, third.Attempts, "an attempt that must not be made is off the record")

	f.maxWait = time.Millisecond
	third.NextAttempt()
	require.ErrorIs(t, f.OpenAttempt(third, 1, nil), ErrUnavailable)
	f.maxWait = patience

	third.NextAttempt()
	go func() { result <- f.OpenAttempt(third, 1, nil) }()
	fillAnswer(first) // the end of a request is never held up
	f.CloseAttempt(first, 1)
	f.CloseRequest(first)
	close(release)
	require.NoError(t, <-result)
	f.succeed(second)
	third.Attempts[0].End = failure.EndSuccess
	third.Terminal = failure.Success
	f.CloseAttempt(third, 1)
	f.CloseRequest(third)
	all.Wait()
	require.Equal(t, 3, f.count("requests"))
	require.Zero(t, f.Status().Queued)
}

func TestCloseLetsWaitersGo(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	r := f.open(time.Now())
	f.stop()
	f.succeed(r)
	require.EqualValues(t, 1, f.Status().Lost, "a record that comes too late is counted")
	late := f.Acquire()
	fillRequest(late, time.Now())
	require.ErrorIs(t, f.OpenAttempt(late, 1, nil), ErrClosed)
	require.NoError(t, f.Flush(t.Context()))
}

// Nobody may touch a record that the ledger owns: run with -race.
func TestHammer(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{QueueLimit: 64, SpoolPath: filepath.Join(dir, "spool"), Retention: time.Hour, MaxSize: 1 << 30})
	f.strict.Store(false) // records are reused
	const workers, each = 8, 150
	var all sync.WaitGroup
	var attempts atomic.Int64
	ids := make([][]string, workers)
	for w := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range each {
				r := f.Acquire()
				fillRequest(r, time.Now())
				r.UserAction = r.Keep(fmt.Appendf(nil, "action-%d-%d", w, i))
				r.CorrelationID = r.Keep(fmt.Appendf(nil, "correlation-%d-%d", w, i))
				ids[w] = append(ids[w], r.ID)
				if err := f.OpenAttempt(r, 1, nil); err != nil {
					t.Error(err)
					return
				}
				attempts.Add(1)
				for random.IntN(3) == 0 && len(r.Attempts) < 4 {
					f.fallBack(r, failure.ServerError)
					attempts.Add(1)
				}
				f.succeed(r)
			}
		})
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := f.Reader().List(context.Background(), Filter{Limit: 50}); err != nil {
					t.Error(err)
				}
				f.Status()
			}
		}
	})
	all.Wait()
	close(stop)
	reading.Wait()
	u, err := f.Reader().Usage(t.Context(), nil, time.Time{})
	require.NoError(t, err)
	require.EqualValues(t, workers*each, u.Total.Requests)
	require.Equal(t, attempts.Load(), u.Total.Attempts)
	for w := range ids {
		for i, id := range ids[w] {
			r := f.show(id)
			require.Equal(t, fmt.Sprintf("action-%d-%d", w, i), r.UserAction)
			require.Equal(t, fmt.Sprintf("correlation-%d-%d", w, i), r.CorrelationID)
			require.Equal(t, failure.Success, r.Terminal)
		}
	}
	s := f.Status()
	require.Zero(t, s.Misuse)
	require.Zero(t, s.Lost)
}

func TestAnotherProcessReads(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{})
	first := f.succeed(f.open(time.Now()))
	require.NoError(t, f.Flush(t.Context()))
	ro, err := storage.Open(t.Context(), storage.Options{URL: "sqlite:" + filepath.Join(dir, "l.db"), ReadOnly: true})
	require.NoError(t, err)
	defer ro.Close() //nolint:errcheck // a test
	reader := NewReader(ro)
	_, err = reader.Show(t.Context(), first)
	require.NoError(t, err)
	// Words that came after the reader has read the dictionary.
	second := f.succeed(f.open(time.Now(), func(r *Record) { r.Key = "a-new-key" }))
	require.NoError(t, f.Flush(t.Context()))
	r, err := reader.Show(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "a-new-key", r.Key)
}

func TestOutcome(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	id := f.succeed(f.open(time.Now()))
	ctx := t.Context()
	require.ErrorIs(t, f.SetOutcome(ctx, "another-key", id, TaskOutcome{Task: "success"}), ErrNotFound)
	require.ErrorIs(t, f.SetOutcome(ctx, "web-app", NewID(time.Now()), TaskOutcome{Task: "success"}), ErrNotFound)
	require.ErrorContains(t, f.SetOutcome(ctx, "web-app", id, TaskOutcome{Task: "maybe"}), "success and failure")
	require.ErrorContains(t, f.SetOutcome(ctx, "web-app", id, TaskOutcome{Task: "success", Score: Some(1.5)}), "0 to 1")
	require.NoError(t, f.SetOutcome(ctx, "web-app", id, TaskOutcome{Task: "failure"}))
	require.NoError(t, f.SetOutcome(ctx, "web-app", id, TaskOutcome{Task: "success", Score: Some(0.75), Label: "x"}))
	require.Contains(t, string(f.show(id).AppendJSON(nil, false)), `"task_outcome":{"task":"success","score":0.75,"label":"x"}`)
	p, err := f.Reader().List(ctx, Filter{})
	require.NoError(t, err)
	require.True(t, p.Requests[0].Outcome.Known)
}

func TestRetentionAndSize(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	f.retention = time.Hour
	now := time.Now()
	foreign := func(r *Record) { r.ID = "foreign-" + r.ID; r.UserAction = "shared" }
	for i := range 1200 {
		at := now.Add(-3*time.Hour + time.Duration(i)*time.Millisecond)
		if i%3 == 0 {
			r := f.open(at, foreign)
			f.fallBack(r, failure.ServerError)
			f.succeed(r)
			continue
		}
		f.succeed(f.open(at))
	}
	r := f.open(now.Add(-2 * time.Hour))
	f.fallBack(r, failure.ServerError)
	running := r.ID
	kept := f.succeed(f.open(now, foreign))
	require.NoError(t, f.Flush(t.Context()))
	require.NoError(t, f.sweepNow(t.Context()))
	require.EqualValues(t, 1200, f.Status().Deleted)
	require.Equal(t, 2, f.count("requests"), "what still runs is kept, however old")
	for table, n := range map[string]int{"attempts": 1, "troubled": 1, "names": 1, "actions": 1} {
		require.Equal(t, n, f.count(table), table)
	}
	require.Equal(t, "shared", f.show(kept).UserAction)
	f.succeed(r)
	require.Equal(t, failure.Success, f.show(running).Terminal)

	f.retention = 0
	for i := range 3000 {
		f.succeed(f.open(now.Add(time.Duration(i) * time.Millisecond)))
	}
	require.NoError(t, f.Flush(t.Context()))
	used, err := f.db.Used(t.Context())
	require.NoError(t, err)
	f.maxSize = used / 2
	require.NoError(t, f.sweepNow(t.Context()))
	used, err = f.db.Used(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, used, f.maxSize)
	left := f.count("requests")
	require.Greater(t, left, 500)
	p, err := f.Reader().List(t.Context(), Filter{Limit: 1})
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(2999*time.Millisecond), p.Requests[0].ReceivedAt, 0, "the oldest go first")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	f.maxSize = 1
	require.ErrorIs(t, f.sweepNow(cancelled), context.Canceled)
}

func TestSweepRunsByItself(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{})
	for i := range 700 {
		f.succeed(f.open(time.Now().Add(-2*time.Hour + time.Duration(i)*time.Millisecond)))
	}
	kept := f.succeed(f.open(time.Now()))
	f.stop()
	f = start(t, dir, Options{Retention: time.Hour})
	f.eventually("deleted", func(s Status) bool { return s.Deleted == 700 })
	require.Equal(t, 1, f.count("requests"))
	f.show(kept)
}

func TestUnusedTextsAreDeleted(t *testing.T) {
	day := 24 * time.Hour
	var now atomic.Pointer[time.Time]
	set := func(at time.Time) { now.Store(&at) }
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set(begin)
	f := start(t, t.TempDir(), Options{Now: func() time.Time { return *now.Load() }})
	f.retention = day
	withInput := func(s string) func(*Record) {
		return func(r *Record) { r.Decisions[0].Input = []byte(`"` + s + `"`) }
	}
	f.succeed(f.open(begin, withInput("old")))
	f.succeed(f.open(begin, withInput("both")))
	require.NoError(t, f.Flush(t.Context()))
	set(begin.Add(10 * day))
	both := f.succeed(f.open(*now.Load(), withInput("both")))
	require.Equal(t, 3, f.count("texts"))
	require.NoError(t, f.sweepNow(t.Context()))
	require.Equal(t, 2, f.count("texts"))
	require.Equal(t, `"both"`, string(f.show(both).Decisions[0].Input))
	again := f.succeed(f.open(*now.Load(), withInput("old"))) // the writer still has it cached
	require.Equal(t, `"old"`, string(f.show(again).Decisions[0].Input))
}

func TestUsageSumsEqualTheLedger(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	now := time.Now().UTC()
	var cost, failed float64
	for i := range 30 {
		r := f.open(now.Add(-time.Duration(i)*time.Hour), func(r *Record) { r.Key = fmt.Sprint("key", i%3) })
		if i%2 == 0 {
			f.fallBack(r, failure.PartialStream)
			r.Attempts[0].CostUSD = Some(0.000000025)
			cost, failed = cost+0.000000025, failed+0.000000025
		}
		f.succeed(r)
		cost += 0.0014425
	}
	u, err := f.Reader().Usage(t.Context(), []string{"key", "day"}, time.Time{})
	require.NoError(t, err)
	var sum UsageRow
	for _, row := range u.Rows {
		sum.Requests += row.Requests
		sum.Attempts += row.Attempts
		sum.Input += row.Input
		sum.cost += row.cost
	}
	require.EqualValues(t, 30, sum.Requests)
	require.EqualValues(t, 45, sum.Attempts)
	require.EqualValues(t, 30*1234, sum.Input)
	require.Equal(t, u.Total.cost, sum.cost)
	require.InDelta(t, cost, u.Total.CostUSD, 1e-12)
	require.InDelta(t, failed, u.Total.FailedCostUSD, 1e-12)
	require.GreaterOrEqual(t, len(u.Rows), 6)

	var parsed struct {
		Rows []struct {
			Key      string
			Requests int
			Cost     float64 `json:"cost_usd"`
		}
	}
	u, err = f.Reader().Usage(t.Context(), []string{"key"}, now.Add(-90*time.Minute))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(u.AppendJSON(nil), &parsed))
	require.Len(t, parsed.Rows, 2)
	require.Equal(t, "key0", parsed.Rows[0].Key)
	_, err = f.Reader().Usage(t.Context(), []string{"colour"}, now)
	require.ErrorContains(t, err, "key, model, alias, cause, day")
	_, err = ParseUsageGroups("key,key")
	require.Error(t, err)
}

func TestExport(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	now := time.Now()
	for i := range 1500 { // more than one part
		r := f.open(now.Add(time.Duration(i) * time.Millisecond))
		if i%100 == 0 {
			r.CorrelationID = "line\nbreak, \"quoted\""
			f.fallBack(r, failure.Timeout)
		}
		f.succeed(r)
	}
	var out strings.Builder
	require.NoError(t, f.Reader().Export(t.Context(), &out, Filter{}, JSONLines))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 1500)
	for _, line := range lines {
		var r struct{ Decisions []any }
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Len(t, r.Decisions, 1)
	}
	out.Reset()
	require.NoError(t, f.Reader().Export(t.Context(), &out, Filter{Class: Some(failure.Timeout)}, CSV))
	rows := readCSV(t, out.String())
	require.Len(t, rows, 1+2*15)
	require.Equal(t, "request_id", rows[0][0])
	require.Equal(t, "line break, \"quoted\"", rows[1][1])
}

func TestFilterErrors(t *testing.T) {
	for query, want := range map[string]string{
		"colour=red":           "allowed are key, model, terminal",
		"limit=0":              "1 to 1000",
		"limit=1001":           "1 to 1000",
		"limit=x":              "1 to 1000",
		"terminal=gone":        "success, exhausted, cancelled, partial, policy_stop, interrupted",
		"class=sad":            "rate_limited",
		"since=yesterday":      "2026-11-30T12:00:00Z",
		"until=1":              "2026-11-30T12:00:00Z",
		"cursor=!!":            "page before",
		"cursor=gAAAAAAAAAA":   "page before",
		"key=a&key=b":          "once",
		"limit=10&Key=a&key=b": `"Key"`,
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = ParseFilter(q)
		var fault *FilterError
		require.ErrorAs(t, err, &fault, query)
		require.ErrorContains(t, err, want, query)
	}
	q, _ := url.ParseQuery("key=a&model=m/x&terminal=&class=timeout&group=g&channel=c&since=2026-01-02T03:04:05.6Z&until=2026-01-02T05:04:05+02:00&user_action=u&alias=al&limit=7&cursor=")
	f, err := ParseFilter(q)
	require.NoError(t, err)
	require.Equal(t, Filter{
		Key: "a", Model: "m/x", Terminal: Some(failure.Running), Class: Some(failure.Timeout), Group: "g", Channel: "c",
		Since: f.Since, Until: f.Until, UserAction: "u", Alias: "al", Limit: 7,
	}, f)
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), f.Since.UTC())
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), f.Until.UTC())
}
