package limit

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The window against its definition: an admission is possible exactly when fewer than the
// limit lie within the last minute, and next is the first moment at which it is.
func TestWindowIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 12).Draw(t, "limit")
		w := NewWindow(limit)
		now := day
		var log []time.Time // of admissions made under a limit, oldest first
		within := func(at time.Time) int {
			n := 0
			for _, a := range log {
				if at.Sub(a) < Minute {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(rapid.OneOf(
				rapid.Just(time.Duration(0)), rapid.Just(Minute), rapid.Just(Minute-1),
				rapid.Custom(func(t *rapid.T) time.Duration {
					return time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "d"))
				}),
			).Draw(t, "pause"))
			if rapid.IntRange(0, 15).Draw(t, "change") == 0 {
				limit = rapid.IntRange(0, 12).Draw(t, "limit")
				w.SetLimit(limit)
			}
			want := limit == 0 || within(now) < limit
			room, next := w.Room(now)
			require.Equal(t, want, room)
			ok, again := w.Take(now)
			require.Equal(t, want, ok)
			require.Equal(t, next, again)
			switch {
			case limit == 0:
			case ok:
				log = append(log, now)
			default:
				require.Less(t, within(next), limit, "it says when a place is free")
				require.GreaterOrEqual(t, within(next.Add(-1)), limit, "and not a moment later")
			}
		}
	})
}

// Above the number of times kept one by one the limit still holds in any minute.
func TestLargeWindowNeverAdmitsMore(t *testing.T) {
	const limit = exact + 1000
	w := NewWindow(limit)
	now, admitted := day, 0
	for range 3 * limit {
		if ok, next := w.Take(now); ok {
			admitted++
		} else {
			require.WithinRange(t, next, day.Add(Minute), day.Add(Minute+grain))
			break
		}
		now = now.Add(100 * time.Microsecond)
	}
	require.Equal(t, limit, admitted)
	require.LessOrEqual(t, w.log.len, exact)
	ok, _ := w.Take(day.Add(Minute + grain))
	require.True(t, ok)
}

func TestWindowGivesMemoryBack(t *testing.T) {
	w := NewWindow(50_000)
	for i := range 50_000 {
		ok, _ := w.Take(day.Add(time.Duration(i) * time.Millisecond))
		require.True(t, ok)
	}
	ok, _ := w.Take(day.Add(time.Hour))
	require.True(t, ok)
	require.Equal(t, 1, w.log.len)
	require.LessOrEqual(t, len(w.log.buf), 1024)
}

func TestWindowUnderParallelUse(t *testing.T) {
	const limit = 500
	w := NewWindow(limit)
	var wg sync.WaitGroup
	admitted := make([]int, 8)
	for i := range admitted {
		wg.Go(func() {
			for range 200 {
				if ok, _ := w.Take(day); ok {
					admitted[i]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range admitted {
		sum += n
	}
	require.Equal(t, limit, sum)
}

func TestWindowAllocatesNothing(t *testing.T) {
	none, some := NewWindow(0), NewWindow(100)
	for range 100 {
		some.Take(day)
	}
	now := day
	require.Zero(t, testing.AllocsPerRun(100, func() {
		none.Take(now)
		now = now.Add(time.Second)
		some.Take(now)
	}))
}

func BenchmarkWindowTake(b *testing.B) {
	w := NewWindow(600)
	now := day
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(100 * time.Millisecond)
		w.Take(now)
	}
}
