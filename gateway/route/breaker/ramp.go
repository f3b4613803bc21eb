package breaker

import "time"

// After probes have closed a circuit its route gets its share back little by little. The
// share is kept by credit: each request that would go to the route first earns the part that
// the ramp has reached, and taking its turn costs one. So the share is exact, not a matter of
// luck, and a handful of requests, which is no rush to protect anyone from, finds the route
// back at once.
const (
	rampUnit  = 1 << 20 // credit of one request
	rampFloor = 5       // requests that the ramp leaves alone
)

// Ramping reports whether the circuit closed so lately that its route does not have its
// whole share back.
func (c *Circuit) Ramping(now time.Time) bool {
	closed := c.closed.Load()
	if closed == 0 || stateOf(c.word.Load()) != Closed {
		return false
	}
	if at(now) >= instant(closed).add(c.registry.Settings().Ramp) {
		c.closed.CompareAndSwap(closed, 0)
		return false
	}
	return true
}

// Turn says whether a route that would go first, and that another could stand in for, goes
// first: yes for a part of the requests that grows over the ramp from none to all.
func (c *Circuit) Turn(now time.Time) bool {
	closed := c.closed.Load()
	ramp := c.registry.Settings().Ramp
	if closed == 0 || ramp <= 0 {
		return true
	}
	part := float64(at(now)-instant(closed)) / float64(ramp)
	if part >= 1 {
		return true
	}
	earned := int64(max(part, 0) * rampUnit)
	for {
		old := c.credit.Load()
		left := old + earned
		turn := left >= rampUnit
		if turn {
			left -= rampUnit
		}
		if c.credit.CompareAndSwap(old, left) {
			return turn
		}
	}
}
