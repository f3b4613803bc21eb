package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// look says whether the ticket's wait is over, without waiting.
func look(t *Ticket) Result { return t.Wait(time.Time{}, time.Unix(0, 0), nil) }

func TestGateTurnsGoRound(t *testing.T) {
	g := NewGate(1, 10, time.Minute)
	require.True(t, g.TryEnter())
	names := []string{"a1", "a2", "a3", "b1", "c1", "b2"}
	tickets := map[string]*Ticket{}
	for _, n := range names {
		tickets[n] = &Ticket{}
		require.True(t, g.Enqueue(tickets[n], n[:1], time.Now()))
		require.Equal(t, Woken, look(tickets[n]))
	}
	require.False(t, g.TryEnter(), "nobody passes who waits")
	var order []string
	for range names {
		g.Leave()
		for _, n := range names {
			if tk := tickets[n]; tk != nil && look(tk) == Entered {
				order = append(order, n)
				delete(tickets, n)
			}
		}
	}
	require.Equal(t, []string{"a1", "b1", "c1", "a2", "b2", "a3"}, order)
	g.Leave()
	running, waiting := g.Load()
	require.Zero(t, running+waiting)
}

func TestGateWithoutQueue(t *testing.T) {
	g := NewGate(1, 0, time.Minute)
	var tk Ticket
	require.True(t, g.Enqueue(&tk, "a", time.Now()), "a free permit needs no place")
	require.Equal(t, Entered, tk.Wait(time.Time{}, time.Time{}, nil))
	require.False(t, g.Enqueue(&tk, "a", time.Now()))
	g.Leave()
	require.Panics(t, g.Leave)
}

func TestGateWithoutLimit(t *testing.T) {
	g := NewGate(0, 0, 0)
	for range 1000 {
		require.True(t, g.TryEnter())
	}
	running, _ := g.Load()
	require.Equal(t, 1000, running)
}

func TestFullQueueIsSharedBetweenKeys(t *testing.T) {
	g := NewGate(1, 4, time.Minute)
	require.True(t, g.TryEnter())
	flood := make([]Ticket, 5)
	for i := range flood[:4] {
		require.True(t, g.Enqueue(&flood[i], "flood", time.Now()))
	}
	require.False(t, g.Enqueue(&flood[4], "flood", time.Now()))
	var a, b, c Ticket
	room := func() bool {
		free, place := g.Room()
		require.False(t, free)
		return place
	}
	require.True(t, room(), "for another key")
	require.True(t, g.Enqueue(&a, "a", time.Now()))
	require.Equal(t, Refused, look(&flood[3]), "the latest of the key with most waiting")
	require.True(t, g.Enqueue(&b, "b", time.Now()))
	require.Equal(t, Refused, look(&flood[2]))
	require.True(t, g.Enqueue(&c, "c", time.Now()))
	require.Equal(t, Refused, look(&flood[1]))
	require.False(t, room())
	require.False(t, g.Enqueue(&flood[4], "d", time.Now()), "nobody has two more than another")
	require.Equal(t, Woken, look(&flood[0]))
	_, waiting := g.Load()
	require.Equal(t, 4, waiting)
}

func TestTicketEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, 4, 2*time.Second)
		require.True(t, g.TryEnter())
		var tk Ticket
		begun := time.Now()

		require.True(t, g.Enqueue(&tk, "a", time.Now()))
		require.Equal(t, Woken, tk.Wait(time.Time{}, begun.Add(time.Second), nil))
		require.Equal(t, time.Second, time.Since(begun))
		require.Equal(t, Expired, tk.Wait(time.Time{}, begun.Add(time.Minute), nil))
		require.Equal(t, 2*time.Second, time.Since(begun))
		require.Equal(t, Cancelled, tk.Wait(time.Time{}, time.Time{}, nil), "it is in no queue")

		require.True(t, g.Enqueue(&tk, "a", time.Now()))
		require.Equal(t, Expired, tk.Wait(time.Now().Add(time.Second), time.Time{}, nil), "the caller's own end is sooner")
		require.Equal(t, 3*time.Second, time.Since(begun))

		changed := make(chan struct{})
		require.True(t, g.Enqueue(&tk, "a", time.Now()))
		time.AfterFunc(time.Millisecond, func() { close(changed) })
		require.Equal(t, Changed, tk.Wait(time.Time{}, time.Time{}, changed))
		time.AfterFunc(time.Millisecond, tk.Cancel)
		require.Equal(t, Cancelled, tk.Wait(time.Time{}, time.Time{}, nil))

		require.True(t, g.Enqueue(&tk, "a", time.Now()))
		time.AfterFunc(time.Millisecond, g.Leave)
		require.Equal(t, Entered, tk.Wait(time.Time{}, time.Time{}, nil))
		tk.Cancel() // too late: nothing happens
		running, waiting := g.Load()
		require.Equal(t, 1, running)
		require.Zero(t, waiting)
	})
}

// A permit that was granted to one who leaves at that moment goes to the next.
func TestGrantedAndCancelled(t *testing.T) {
	g := NewGate(1, 4, time.Minute)
	require.True(t, g.TryEnter())
	var first, second Ticket
	require.True(t, g.Enqueue(&first, "a", time.Now()))
	require.True(t, g.Enqueue(&second, "a", time.Now()))
	g.Leave()
	first.Cancel()
	require.Equal(t, Cancelled, look(&first))
	require.Equal(t, Entered, look(&second))
}

func TestResizeKeepsPermits(t *testing.T) {
	g := NewGate(3, 4, time.Minute)
	for range 3 {
		require.True(t, g.TryEnter())
	}
	g.Resize(1, 4, time.Minute)
	var tk Ticket
	require.True(t, g.Enqueue(&tk, "a", time.Now()))
	g.Leave()
	g.Leave()
	require.Equal(t, Woken, look(&tk), "one permit is still out")
	g.Resize(2, 4, time.Minute)
	require.Equal(t, Entered, look(&tk), "a larger limit lets in who waits")
	running, _ := g.Load()
	require.Equal(t, 2, running)
}

// The gate against a simple model of it, over any sequence of acts.
func TestGateModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(t, "limit")
		queue := rapid.IntRange(0, 5).Draw(t, "queue")
		g := NewGate(limit, queue, time.Hour)
		type waiter struct {
			key string
			t   *Ticket
		}
		var turns []string // keys in the order of their turns
		lines := map[string][]*waiter{}
		running, waiting := 0, 0
		state := map[*waiter]Result{}
		drop := func(w *waiter) {
			lines[w.key] = slices.DeleteFunc(lines[w.key], func(o *waiter) bool { return o == w })
			waiting--
			if len(lines[w.key]) == 0 {
				turns = slices.DeleteFunc(turns, func(k string) bool { return k == w.key })
			}
		}
		admit := func() {
			for waiting > 0 && running < limit {
				k := turns[0]
				w := lines[k][0]
				turns = append(turns[1:], k)
				drop(w)
				running++
				state[w] = Entered
			}
		}
		keys := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": func(t *rapid.T) {
				w := &waiter{key: keys.Draw(t, "key"), t: &Ticket{}}
				ok := g.Enqueue(w.t, w.key, time.Now())
				if waiting == 0 && running < limit {
					require.True(t, ok)
					running++
					state[w] = Entered
					return
				}
				if waiting >= queue {
					longest := ""
					for _, k := range turns {
						if longest == "" || len(lines[k]) > len(lines[longest]) {
							longest = k
						}
					}
					if queue == 0 || longest == "" || len(lines[longest]) < len(lines[w.key])+2 {
						require.False(t, ok)
						return
					}
					out := lines[longest][len(lines[longest])-1]
					drop(out)
					state[out] = Refused
				}
				require.True(t, ok)
				if len(lines[w.key]) == 0 {
					turns = append(turns, w.key)
				}
				lines[w.key] = append(lines[w.key], w)
				waiting++
				state[w] = Woken
			},
			"try": func(t *rapid.T) {
				want := waiting == 0 && running < limit
				require.Equal(t, want, g.TryEnter())
				if want {
					running++
				}
			},
			"leave": func(t *rapid.T) {
				if running == 0 {
					t.Skip()
				}
				g.Leave()
				running--
				admit()
			},
			"cancel": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				if len(lines[k]) == 0 {
					t.Skip()
				}
				w := rapid.SampledFrom(lines[k]).Draw(t, "who")
				w.t.Cancel()
				drop(w)
				state[w] = Cancelled
			},
			"resize": func(t *rapid.T) {
				limit = rapid.IntRange(1, 3).Draw(t, "limit")
				g.Resize(limit, queue, time.Hour)
				admit()
			},
			"": func(t *rapid.T) {
				r, n := g.Load()
				require.Equal(t, running, r)
				require.Equal(t, waiting, n)
				for w, want := range state {
					require.Equal(t, want, look(w.t), "a ticket of %s", w.key)
					if want != Woken {
						delete(state, w)
					}
				}
			},
		})
	})
}

// Many goroutines enter, wait, give up, are cancelled and resized against each other: never
// more permits than the limit, and in the end none is lost.
func TestGateHammer(t *testing.T) {
	const limit = 4
	g := NewGate(limit, 16, 20*time.Millisecond)
	var running, entered atomic.Int64
	changed := make(chan struct{})
	var wg sync.WaitGroup
	work := func() {
		if n := running.Add(1); n > limit {
			panic(fmt.Sprintf("%d at once", n))
		}
		entered.Add(1)
		running.Add(-1)
		g.Leave()
	}
	for i := range 24 {
		wg.Go(func() {
			var tk Ticket
			r := rand.New(rand.NewPCG(uint64(i), 1))
			key := fmt.Sprint("key", i%5)
			for range 300 {
				if g.TryEnter() {
					work()
					continue
				}
				if !g.Enqueue(&tk, key, time.Now()) {
					continue
				}
				var cancels sync.WaitGroup
				if r.IntN(3) == 0 {
					cancels.Go(tk.Cancel)
				}
				var res Result
				for res = Woken; res == Woken || res == Changed; {
					var c <-chan struct{}
					if r.IntN(4) == 0 {
						c = changed
					}
					res = tk.Wait(time.Time{}, time.Now().Add(time.Duration(r.IntN(int(time.Millisecond)))), c)
				}
				if res == Entered {
					work()
				}
				cancels.Wait()
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			g.Resize(1+i%limit, 16, 20*time.Millisecond)
		}
		g.Resize(limit, 16, 20*time.Millisecond)
		close(changed)
	})
	wg.Wait()
	r, w := g.Load()
	require.Zero(t, r)
	require.Zero(t, w)
	require.Empty(t, g.lines)
	require.Nil(t, g.turn)
	require.Positive(t, entered.Load())
	for range limit {
		require.True(t, g.TryEnter(), "every permit came back")
	}
	require.False(t, g.TryEnter())
}

func TestGateAllocatesNothing(t *testing.T) {
	g := NewGate(1, 4, time.Minute)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !g.TryEnter() {
			panic("not free")
		}
		g.Leave()
	}))
	var tk Ticket
	round := func() {
		g.TryEnter()
		g.Enqueue(&tk, "a", time.Now())
		g.Leave()
		tk.Wait(time.Time{}, time.Time{}, nil)
		g.Leave()
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round), "a ticket and a line are used again")
}

func BenchmarkGateUncontended(b *testing.B) {
	g := NewGate(64, 256, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		g.TryEnter()
		g.Leave()
	}
}
