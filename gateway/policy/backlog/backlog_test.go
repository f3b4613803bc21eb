package backlog

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsAddedIsTakenOnce(t *testing.T) {
	b := New[int](10_000)
	var adding sync.WaitGroup
	for worker := range 4 {
		adding.Go(func() {
			for i := range 1000 {
				b.Add(worker*1000 + i)
			}
		})
	}
	over := make(chan struct{})
	go func() { adding.Wait(); close(over) }()
	var taken []int
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		taken = b.Take(taken)
	}
	require.Zero(t, b.Lost())
	require.Len(t, taken, 4000)
	slices.Sort(taken)
	require.Len(t, slices.Compact(taken), 4000)
}

func TestWhatDoesNotFitIsCounted(t *testing.T) {
	b := New[int](16)
	for i := range 1000 {
		b.Add(i)
	}
	select {
	case <-b.Urgent():
	default:
		t.Fatal("a full backlog is urgent")
	}
	taken := b.Take(nil)
	require.Len(t, taken, 16)
	require.EqualValues(t, 1000-16, b.Lost())
	require.Zero(t, b.Lost())
	require.Empty(t, b.Take(nil))
	b.Close()
	b.Add(1)
	require.Empty(t, b.Take(nil))
	require.Zero(t, b.Lost())
}

func TestAddAllocatesNothing(t *testing.T) {
	b := New[[16]uint64](1 << 14)
	var taken [][16]uint64
	round := func() {
		for range 4000 {
			b.Add([16]uint64{})
		}
		taken = b.Take(taken[:0])
	}
	round()
	round()
	round()
	require.Less(t, testing.AllocsPerRun(20, round), 20.0, "per 4000 values")
}

func BenchmarkAdd(b *testing.B) {
	q := New[[16]uint64](1 << 14)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			q.Add([16]uint64{})
		}
	})
}
