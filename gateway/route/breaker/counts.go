package breaker

import (
	"sync/atomic"
	"time"
)

// counts counts successes and failures over a sliding window, in slices of a twentieth of it:
// what is older than the window is never counted, what is younger than nineteen twentieths of
// it always is. Adding is one atomic operation.
type counts struct {
	slices [slicesInWindow]atomic.Uint64
}

const slicesInWindow = 20

// A slice packs the number of its time span, so that an outdated one is known, with the
// successes and failures in it.
const (
	countBits = 20
	countMax  = 1<<countBits - 1
	spanMask  = 1<<(64-2*countBits) - 1
)

func pack(span, good, bad uint64) uint64 { return span<<(2*countBits) | good<<countBits | bad }

func unpack(v uint64) (span, good, bad uint64) {
	return v >> (2 * countBits), v >> countBits & countMax, v & countMax
}

func spanAt(t instant, window time.Duration) uint64 {
	return uint64(t / instant(max(window/slicesInWindow, 1)))
}

// add counts one outcome.
func (c *counts) add(t instant, window time.Duration, failed bool) {
	span := spanAt(t, window)
	s := &c.slices[span%slicesInWindow]
	for {
		old := s.Load()
		in, good, bad := unpack(old)
		if in != span&spanMask {
			good, bad = 0, 0
		}
		if failed {
			bad = min(bad+1, countMax)
		} else {
			good = min(good+1, countMax)
		}
		if s.CompareAndSwap(old, pack(span&spanMask, good, bad)) {
			return
		}
	}
}

// sum returns what lies in the window that ends at t.
func (c *counts) sum(t instant, window time.Duration) (good, bad int) {
	last := spanAt(t, window)
	for i := range uint64(slicesInWindow) {
		span := last - i
		in, g, b := unpack(c.slices[span%slicesInWindow].Load())
		if in == span&spanMask {
			good, bad = good+int(g), bad+int(b)
		}
	}
	return good, bad
}

func (c *counts) clear() {
	for i := range c.slices {
		c.slices[i].Store(0)
	}
}
