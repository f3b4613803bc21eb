package upstream

import "time"

// Options configure a pool.
type Options struct {
	Target Target
	// IdleTTL is how long an unused connection is kept; keep it below the upstream's own
	// limit. Default 30 s.
	IdleTTL time.Duration
	// MaxIdle is how many unused connections are kept. Default 64.
	MaxIdle int
	// MaxAge is how long a connection is used at most, so that a changed DNS answer is
	// followed; each connection's is up to a fifth shorter by chance. Default 5 min.
	MaxAge time.Duration
	// MaxHeaderBytes bounds a response head, all 1xx heads before it included. Default 64 KiB.
	MaxHeaderBytes int
}

// Pool holds the connections of one channel. It sets no limit on those in use: the gate
// before it does. Its methods are safe for concurrent use.
type Pool struct{}

// NewPool checks the options, reads the files they name and returns an empty pool. Nothing
// is dialled.
func NewPool(o Options) (*Pool, error) { panic("upstream: not written yet") }

// Retire closes the unused connections, and every other one when it comes back. Calls can
// still be started: requests of an old generation end on it.
func (p *Pool) Retire() { panic("upstream: not written yet") }

// Close retires the pool and refuses new calls ([ErrClosed]). It waits for nothing: calls
// in flight end by their own.
func (p *Pool) Close() { panic("upstream: not written yet") }

// Stats returns the pool's numbers.
func (p *Pool) Stats() Stats { panic("upstream: not written yet") }

// Stats are the numbers of a pool: what there is now, and counts since it was made.
type Stats struct {
	Idle, InUse, Dialing int

	Dials       uint64 // connections asked for
	DialsFailed uint64 // of those, without a connection in the end
	Reuses      uint64 // calls that took an unused connection
	Stale       uint64 // unused connections found closed, or with stray bytes, before use
	Expired     uint64 // unused connections closed for IdleTTL or MaxAge
	Redials     uint64 // connections replaced inside a call, proven closed before anything was read
	Dropped     uint64 // connections not kept after a call
	Aborts      uint64 // calls ended by Abort
}
