package limit

import "time"

// Window admits at most a number of times in any minute, the whole burst allowed. All
// methods may be called from any goroutine.
type Window struct{}

// NewWindow returns a window that admits perMinute times in any 60 s; 0 = no limit.
func NewWindow(perMinute int) *Window { return &Window{} }

// SetLimit changes the limit and keeps what was admitted.
func (w *Window) SetLimit(perMinute int) {}

// Take admits, or says when the next admission will be possible.
func (w *Window) Take(now time.Time) (ok bool, next time.Time) { return true, time.Time{} }

// Room says what Take would, and admits nothing.
func (w *Window) Room(now time.Time) (ok bool, next time.Time) { return true, time.Time{} }
