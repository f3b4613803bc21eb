package wasm

import "time"

const (
	circuitFailures = 5
	circuitWindow   = 10 * time.Second
	circuitPause    = time.Second
	circuitLongest  = time.Minute
)

// circuit keeps calls away from a plugin that keeps failing. It opens after five failures within
// ten seconds with no success between them: one caller whose requests break a plugin does not
// close it for the others. It lets one call through after a pause of a second; if that fails too
// the pause doubles, up to a minute. It is guarded by the pool's lock.
type circuit struct {
	failures [circuitFailures]int64 // when, the oldest first
	count    int
	pause    time.Duration // of the last opening; 0 while closed
	until    int64         // when the next call may try
}

// admit says whether a call may go ahead.
func (c *circuit) admit(now int64) bool {
	if c.pause == 0 {
		return true
	}
	if now < c.until {
		return false
	}
	c.until = now + int64(c.pause) // this one tries; the next must wait for what comes of it
	return true
}

func (c *circuit) open() bool { return c.pause > 0 }

func (c *circuit) success() { c.count, c.pause = 0, 0 }

// failure records one and says whether the circuit opened, or opened again.
func (c *circuit) failure(now int64) bool {
	if c.pause > 0 {
		c.pause = min(2*c.pause, circuitLongest)
		c.until = now + int64(c.pause)
		return true
	}
	if c.count == circuitFailures {
		copy(c.failures[:], c.failures[1:])
		c.count--
	}
	c.failures[c.count] = now
	c.count++
	if c.count < circuitFailures || now-c.failures[0] > int64(circuitWindow) {
		return false
	}
	c.pause = circuitPause
	c.until = now + int64(c.pause)
	return true
}
