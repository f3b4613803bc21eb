package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func TestStorageAwayAndBack(t *testing.T) {
	for _, durability := range []Durability{GroupCommit, Sync} {
		dir := t.TempDir()
		f := start(t, dir, Options{Durability: durability, SpoolPath: filepath.Join(dir, "spool")})
		now := time.Now()
		before := f.open(now) // open while the storage goes
		require.NoError(t, f.Flush(t.Context()))
		back := f.away()
		during := f.open(now.Add(time.Second))
		f.fallBack(during, failure.Overloaded)
		ended := f.succeed(f.open(now.Add(2 * time.Second)))
		require.NoError(t, f.Flush(t.Context()), "spooled is as good as written")
		f.eventually("degraded", func(s Status) bool { return s.Degraded && s.SpoolBytes > 0 })
		require.NotEmpty(t, f.Status().Reason)
		require.False(t, f.Status().Refusing)
		one := f.succeed(before)
		back()
		f.eventually("back", func(s Status) bool { return !s.Degraded })
		require.Zero(t, f.Status().SpoolBytes)
		two := f.succeed(during)
		for _, id := range []string{one, two, ended} {
			require.Equal(t, failure.Success, f.show(id).Terminal)
		}
		require.Len(t, f.show(two).Attempts, 2)
		require.Equal(t, string(sampleInput), string(f.show(ended).Decisions[0].Input))
		require.Equal(t, 3, f.count("requests"))
		require.Zero(t, f.Status().Lost)
		f.stop()
	}
}

func TestTheSpoolSurvivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spool")
	f := start(t, dir, Options{SpoolPath: path})
	known := f.open(time.Now())
	require.NoError(t, f.Flush(t.Context()))
	back := f.away()
	ended := f.succeed(known)
	open := f.open(time.Now()).ID
	require.NoError(t, f.Flush(t.Context()))
	f.stop() // with the storage away
	back()

	// A crash in the middle of a write leaves half a frame.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.Write([]byte{200, 0, 0, 0, 1, 2, 3, 4, 5})
	require.NoError(t, err)
	require.NoError(t, file.Close())

	f = start(t, dir, Options{SpoolPath: path})
	require.Equal(t, failure.Success, f.show(ended).Terminal)
	require.Equal(t, failure.Interrupted, f.show(open).Terminal)
	require.Equal(t, 2, f.count("requests"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, len(spoolMagic), info.Size())
	f.stop()

	require.NoError(t, os.WriteFile(path, []byte("something else entirely"), 0o600))
	db, err := storage.Open(t.Context(), storage.Options{URL: "sqlite:" + filepath.Join(dir, "l.db")})
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test
	_, err = Open(t.Context(), Options{DB: db, SpoolPath: path})
	require.ErrorContains(t, err, "move it away")
}

func TestOnlyAFullSpoolRefuses(t *testing.T) {
	for _, durability := range []Durability{GroupCommit, Sync} {
		dir := t.TempDir()
		f := start(t, dir, Options{Durability: durability, SpoolPath: filepath.Join(dir, "spool"), SpoolLimit: 4096})
		back := f.away()
		var taken []*Record
		refused := false
		for range 1000 {
			r := f.Acquire()
			fillRequest(r, time.Now())
			err := f.OpenAttempt(r, 1, nil)
			if err != nil {
				require.ErrorIs(t, err, ErrUnavailable)
				require.Empty(t, r.Attempts)
				refused = true
				r.Terminal, r.Status = failure.PolicyStop, 503
				f.CloseRequest(r)
				break
			}
			taken = append(taken, r)
			require.NoError(t, f.Flush(t.Context()))
		}
		require.True(t, refused)
		require.NotEmpty(t, taken)
		require.True(t, f.Status().Refusing)
		var ids []string
		for _, r := range taken { // the ends are kept all the same
			ids = append(ids, f.succeed(r))
		}
		require.NoError(t, f.Flush(t.Context()))
		back()
		f.eventually("back", func(s Status) bool { return !s.Degraded && !s.Refusing })
		ids = append(ids, f.succeed(f.open(time.Now())))
		for _, id := range ids {
			require.Equal(t, failure.Success, f.show(id).Terminal)
		}
		require.Equal(t, len(ids), f.count("requests"))
		require.EqualValues(t, 1, f.Status().Lost, "the request that was refused")
		f.stop()
	}
}

func TestWithoutASpoolStorageAwayRefuses(t *testing.T) {
	f := start(t, t.TempDir(), Options{Durability: Sync})
	back := f.away()
	r := f.Acquire()
	fillRequest(r, time.Now())
	require.ErrorIs(t, f.OpenAttempt(r, 1, nil), ErrUnavailable)
	f.Discard(r)
	back()
	f.eventually("back", func(s Status) bool { return !s.Degraded })
	f.succeed(f.open(time.Now()))
	require.Equal(t, 1, f.count("requests"))
}

// A full disk, as SQLite sees it.
func TestAFullDatabase(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{SpoolPath: filepath.Join(dir, "spool")})
	limit := func(n int64) {
		err := f.db.Update(t.Context(), func(tx *storage.Tx) error {
			_, err := tx.Int("PRAGMA max_page_count")
			if err != nil {
				return err
			}
			return tx.Each("PRAGMA max_page_count = "+map[bool]string{true: "1", false: "1000000"}[n == 1], func([]any) error { return nil })
		})
		require.NoError(t, err)
	}
	limit(1) // no more pages than there are
	var ids []string
	for range 400 {
		ids = append(ids, f.succeed(f.open(time.Now())))
	}
	require.NoError(t, f.Flush(t.Context()))
	require.True(t, f.Status().Degraded)
	require.Contains(t, f.Status().Reason, "full")
	limit(2)
	f.eventually("back", func(s Status) bool { return !s.Degraded })
	for _, id := range ids {
		require.Equal(t, failure.Success, f.show(id).Terminal)
	}
	require.Equal(t, len(ids), f.count("requests"))
}

// Storage that comes and goes under load loses nothing and repeats nothing.
func TestFlappingStorage(t *testing.T) {
	dir := t.TempDir()
	f := start(t, dir, Options{SpoolPath: filepath.Join(dir, "spool"), QueueLimit: 128})
	f.strict.Store(false)
	const workers, each = 4, 100
	var all sync.WaitGroup
	ids := make([][]string, workers)
	for w := range workers {
		all.Go(func() {
			for i := range each {
				r := f.Acquire()
				fillRequest(r, time.Now())
				ids[w] = append(ids[w], r.ID)
				if err := f.OpenAttempt(r, 1, nil); err != nil {
					t.Error(err)
					return
				}
				if i%4 == 0 {
					f.fallBack(r, failure.ServerError)
				}
				if i%10 == 0 {
					time.Sleep(20 * time.Millisecond)
				}
				f.succeed(r)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for running := true; running; {
		back := f.away()
		select {
		case <-done:
			running = false
		case <-time.After(30 * time.Millisecond):
		}
		back()
		select {
		case <-done:
			running = false
		case <-time.After(30 * time.Millisecond):
		}
	}
	f.eventually("back", func(s Status) bool { return !s.Degraded })
	require.Equal(t, workers*each, f.count("requests"))
	for w := range ids {
		for i, id := range ids[w] {
			r := f.show(id)
			require.Equal(t, failure.Success, r.Terminal)
			require.Len(t, r.Attempts, 1+map[bool]int{true: 1}[i%4 == 0])
		}
	}
	require.Zero(t, f.Status().Lost)
}

// A record that can never be written does not hold up the others.
func TestAPoisonedRecord(t *testing.T) {
	f := start(t, t.TempDir(), Options{})
	require.NoError(t, f.db.Update(context.Background(), func(tx *storage.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER poison BEFORE INSERT ON actions WHEN new.action = 'poison' BEGIN SELECT raise(FAIL, 'poisoned'); END")
		return err
	}))
	good := f.succeed(f.open(time.Now()))
	bad := f.succeed(f.open(time.Now(), func(r *Record) { r.UserAction = "poison" }))
	after := f.succeed(f.open(time.Now()))
	require.NoError(t, f.Flush(t.Context()))
	f.show(good)
	f.show(after)
	_, err := f.Reader().Show(t.Context(), bad)
	require.True(t, errors.Is(err, ErrNotFound))
	s := f.Status()
	require.False(t, s.Degraded)
	require.GreaterOrEqual(t, s.Lost, uint64(1))
	require.Contains(t, s.LostReason, "poisoned")
}
