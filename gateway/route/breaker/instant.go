package breaker

import "time"

// instant is a time in nanoseconds. It keeps the monotonic reading, which a change of the
// wall clock does not touch, and is positive for every time within decades of the process's
// start: zero is long past.
type instant int64

var start = time.Now()

func at(t time.Time) instant { return instant(t.Sub(start)) + 1<<61 }

// time returns the instant as a time on the clock that now was read from.
func (i instant) time(now time.Time) time.Time { return now.Add(time.Duration(i - at(now))) }

func (i instant) add(d time.Duration) instant { return i + instant(d) }
