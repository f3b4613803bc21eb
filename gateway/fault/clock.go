package fault

import "time"

// Clock is where a provider takes time from. Implementations must be safe for
// concurrent use.
type Clock interface {
	// Now is the present moment.
	Now() time.Time
	// After returns a channel that receives once when d has passed, and a
	// function that releases the timer; stop may be called at any time.
	After(d time.Duration) (fired <-chan time.Time, stop func())
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
