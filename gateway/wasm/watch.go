package wasm

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// tick is how late a guest is stopped at most, beside what is left of its slice.
const tick = 10 * time.Millisecond

// restAfter is how many ticks without a call put the watcher to rest.
const restAfter = 100

var epoch = time.Now()

// nanotime is a monotonic clock.
func nanotime() int64 { return int64(time.Since(epoch)) }

// watched is an instance's place under the watcher. It is there as long as the instance; a call
// costs an atomic store, a load and a compare-and-swap.
type watched struct {
	until atomic.Int64 // when the running call is to be stopped; 0: none runs, -1: it was stopped
	kill  api.MutableGlobal
}

// begin watches a call.
func (w *watched) begin(wall time.Duration) int64 {
	until := nanotime() + int64(wall)
	w.until.Store(until)
	watcher.arm()
	return until
}

// end says whether the call came back before it was stopped.
func (w *watched) end(until int64) bool { return w.until.CompareAndSwap(until, 0) }

// stop kills the running call, if there is one. The flag is never taken back: who was stopped is
// thrown away.
func (w *watched) stop(until int64) {
	if w.until.CompareAndSwap(until, -1) {
		w.kill.Set(1)
	}
}

// watcher stops the calls of all plugins that overstay. Its goroutine lives while there are
// instances, and ticks only while calls run.
var watcher watch

type watch struct {
	all     atomic.Pointer[[]*watched] // copied on every change
	armed   atomic.Bool
	mu      sync.Mutex
	running bool
	wake    chan struct{} // of the goroutine that runs
}

func (w *watch) list() []*watched {
	if p := w.all.Load(); p != nil {
		return *p
	}
	return nil
}

func (w *watch) add(one *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := append(slices.Clone(w.list()), one)
	w.all.Store(&next)
	if !w.running {
		w.running = true
		w.wake = make(chan struct{}, 1)
		w.armed.Store(false)
		go w.run(w.wake)
	}
}

func (w *watch) remove(one *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(w.list()), func(x *watched) bool { return x == one })
	w.all.Store(&next)
	if len(next) == 0 && w.running {
		poke(w.wake)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// arm makes sure that the watcher ticks. In the steady state it is one load of a flag that
// nobody writes.
func (w *watch) arm() {
	if !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		w.mu.Lock()
		c := w.wake
		w.mu.Unlock()
		poke(c)
	}
}

func (w *watch) run(wake chan struct{}) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		<-wake
		if w.over() {
			return
		}
		ticker.Reset(tick)
		for idle := 0; idle < restAfter; idle++ {
			select {
			case <-ticker.C:
			case <-wake:
				if w.over() {
					return
				}
			}
			if w.scan() {
				idle = 0
			}
		}
		ticker.Reset(time.Hour)
		// A call that began before the flag fell is seen here; one that begins later sees it.
		w.armed.Store(false)
		if w.scan() {
			w.armed.Store(true)
			poke(wake)
		}
	}
}

// over ends the goroutine when there is nothing left to watch.
func (w *watch) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list()) > 0 {
		return false
	}
	w.running = false
	w.armed.Store(false)
	return true
}

// scan stops the calls that overstay and says whether any runs.
func (w *watch) scan() bool {
	now := nanotime()
	busy := false
	for _, one := range w.list() {
		until := one.until.Load()
		if until <= 0 {
			continue
		}
		busy = true
		if now >= until {
			one.stop(until)
		}
	}
	return busy
}
