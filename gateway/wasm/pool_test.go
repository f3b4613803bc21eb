package wasm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// take acquires in a goroutine of its own.
func take(p *pool, urgent bool, w Wait) <-chan error {
	done := make(chan error, 1)
	go func() {
		i, err := p.acquire(urgent, w)
		if err == nil {
			p.give(i, urgent, unused)
		}
		done <- err
	}()
	return done
}

func waiting(t *testing.T, p *pool, urgent, patient int) {
	t.Helper()
	eventually(t, "they wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.urgent.length == urgent && p.patient.length == patient
	})
}

func TestThePoolIsBoundedAndHalfOfItServesRequests(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 4 })
	p := &h.pool
	var held []*instance
	hold := func(urgent bool) {
		t.Helper()
		i, err := p.acquire(urgent, Wait{Deadline: time.Now().Add(10 * time.Second)})
		require.NoError(t, err)
		held = append(held, i)
	}
	hold(false)
	hold(false)
	_, err := p.acquire(false, Wait{Deadline: time.Now().Add(time.Millisecond)})
	require.Equal(t, Busy, reason(t, err), "a third request waits")
	hold(true)
	hold(true)
	_, err = p.acquire(true, Wait{Deadline: time.Now().Add(time.Millisecond)})
	require.Equal(t, Busy, reason(t, err), "there are four")
	require.Equal(t, 4, p.total)
	waiting(t, p, 0, 0)

	p.give(held[0], false, unused)
	p.give(held[1], false, unused)
	p.give(held[2], true, unused)
	p.give(held[3], true, unused)
	require.Len(t, p.idle, 4)
	i, err := p.acquire(true, Wait{})
	require.NoError(t, err)
	require.Equal(t, held[3], i, "the last one given back comes first")
	p.give(i, true, unused)
}

func TestEventsGoFirst(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	p := &h.pool
	i, err := p.acquire(true, Wait{})
	require.NoError(t, err)
	var order []string
	var mu sync.Mutex
	var all sync.WaitGroup
	enter := func(urgent bool, name string) {
		all.Go(func() {
			i, err := p.acquire(urgent, Wait{})
			require.NoError(t, err)
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			p.give(i, urgent, unused)
		})
	}
	enter(false, "request")
	waiting(t, p, 0, 1)
	enter(true, "first event")
	waiting(t, p, 1, 1)
	enter(true, "second event")
	waiting(t, p, 2, 1)
	p.give(i, true, unused)
	all.Wait()
	require.Equal(t, []string{"first event", "second event", "request"}, order)
}

func TestAWaitEndsWithItsCaller(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	p := &h.pool
	i, err := p.acquire(true, Wait{})
	require.NoError(t, err)
	cancel := make(chan struct{})
	cancelled := take(p, false, Wait{Cancel: cancel})
	late := take(p, false, Wait{Deadline: time.Now().Add(20 * time.Millisecond)})
	close(cancel)
	require.Equal(t, Cancelled, reason(t, <-cancelled))
	require.Equal(t, Busy, reason(t, <-late))
	waiting(t, p, 0, 0)
	p.give(i, true, unused)
	require.NoError(t, <-take(p, false, Wait{}))
}

func TestABrokenInstanceIsReplacedInTheBackground(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	_, err := h.do(traps)
	require.Error(t, err)
	eventually(t, "another one is there", func() bool {
		h.pool.mu.Lock()
		defer h.pool.mu.Unlock()
		return len(h.pool.idle) == 1 && h.pool.starting == 0
	})
}

func TestWhoWaitsForABrokenPluginIsSentAway(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	p := &h.pool
	p.start = func() (*instance, error) { return nil, fmt.Errorf("no") }
	i, err := p.acquire(true, Wait{})
	require.NoError(t, err)
	w := take(p, false, Wait{})
	waiting(t, p, 0, 1)
	p.give(i, true, broken)
	require.Equal(t, NotStart, reason(t, <-w))
	for range circuitFailures {
		err = <-take(p, false, Wait{})
	}
	require.Equal(t, Circuit, reason(t, err))
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	p := &h.pool
	i, err := p.acquire(true, Wait{})
	require.NoError(t, err)
	w := take(p, false, Wait{})
	waiting(t, p, 0, 1)
	closed := make(chan error)
	go func() { closed <- h.Close(context.Background()) }()
	require.Equal(t, Closed, reason(t, <-w))
	select {
	case <-closed:
		t.Fatal("a call was still running")
	default:
	}
	p.give(i, true, worked)
	require.NoError(t, <-closed)
	require.False(t, h.Plugin.pool.total != 0)
}

func TestTheLastHolderCloses(t *testing.T) {
	h := load(t, guest{}, nil)
	require.True(t, h.Retain())
	h.Release()
	_, err := h.do(echoes)
	require.NoError(t, err)
	h.Release()
	<-h.closed
	require.False(t, h.Retain())
	_, err = h.do(echoes)
	require.Equal(t, Closed, reason(t, err))
}

// Many callers, some of them hostile, some impatient, with instances that wear out and a plugin
// that closes in the middle: every call ends in one of the ways it may, and all is given back.
func TestHammer(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize, o.Limits.Memory = 3, 2<<20 })
	var ok, failed atomic.Int64
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			var dst []byte
			for range 400 {
				in := append([]byte{echoes}, make([]byte, r.IntN(3000))...)
				switch r.IntN(20) {
				case 0:
					in[0] = traps
				case 1, 2:
					in[0] = leaks
				}
				w := Wait{}
				cancel := make(chan struct{})
				switch r.IntN(4) {
				case 0:
					w.Deadline = time.Now().Add(time.Duration(r.IntN(2000)) * time.Microsecond)
				case 1:
					w.Cancel = cancel
					if r.IntN(2) == 0 {
						close(cancel)
					}
				}
				op := []Op{OpRequest, OpEvents}[r.IntN(2)]
				out, err := h.Call(w, op, in, dst[:0])
				if err == nil {
					require.Equal(t, in, out)
					ok.Add(1)
				} else {
					require.Contains(t, []Reason{Trapped, Circuit, Busy, Cancelled, Closed}, reason(t, err))
					failed.Add(1)
				}
			}
		})
	}
	eventually(t, "work", func() bool { return ok.Load() > 500 })
	require.NoError(t, h.Close(context.Background()))
	all.Wait()
	require.Positive(t, failed.Load())
	p := &h.pool
	require.Zero(t, p.total+p.busy+p.bulk+p.starting+p.urgent.length+p.patient.length)
	n := 0
	h.instances.Range(func(any, any) bool { n++; return true })
	require.Zero(t, n)
	eventually(t, "the watcher is empty", func() bool { runtime.Gosched(); return len(watcher.list()) == 0 })
	t.Log(ok.Load(), "calls worked,", failed.Load(), "did not")
}
