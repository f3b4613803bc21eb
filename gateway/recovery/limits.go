package recovery

import "time"

// Limits is what one request may spend. Every count is a hard cap.
type Limits struct {
	MaxAttempts int
	MaxPerRoute int // 1 = no same-route retry; never limits fallback to another route
	MaxPerGroup int
	UserAction  struct {
		Counted bool // the request belongs to a named user action
		Left    int  // attempts which that user action has left before this request
	}
	Deadline  time.Time     // until output is committed; zero = none
	Reserve   time.Duration // kept for fallback while an untried equal route or substitute is left
	MinUseful time.Duration // less than this left: no further attempt
	Backoff   Backoff

	SubstitutionDenied bool // the caller, or admission, forbade it
}

// Backoff is exponential with full jitter: the wait before the n-th further attempt on a
// route is uniform between 0 and min(Max, Base·2ⁿ⁻¹).
type Backoff struct {
	Base, Max time.Duration
	MaxWait   time.Duration // a longer wait, Retry-After included, does not fit
}

// Wait returns the backoff after n failures (n ≥ 1) with jitter in [0, 1).
func (b Backoff) Wait(n int, jitter float64) time.Duration {
	d := b.Base
	for i := 1; i < n && d < b.Max; i++ {
		d *= 2
	}
	if d > b.Max {
		d = b.Max
	}
	return time.Duration(float64(d) * jitter)
}

// reserve is the part of the deadline kept for fallback: none where it would be less than
// what makes an attempt useful.
func (m *Machine) reserve() time.Duration {
	if m.limits.Reserve < m.limits.MinUseful {
		return 0
	}
	return m.limits.Reserve
}
