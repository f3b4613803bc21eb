package flow

import (
	"errors"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// Why an upstream call was aborted.
var (
	errCallerLeft = errors.New("the caller has left")
	errShutdown   = errors.New("the gateway is shutting down")
)

// signals is what other goroutines may tell a running exchange. Each signal reaches whatever
// the exchange is waiting on at that moment, and everything it waits on later.
type signals struct {
	mu       sync.Mutex
	leftAt   time.Time // the caller has gone; zero = it has not
	shutdown bool
	call     *upstream.Call // the running call, nil if none
	keepCall bool           // let the call run on though the caller has gone: its usage is wanted
	ticket   *limit.Ticket  // the place in a queue, nil if none
	// wake holds one token when a signal came; whoever pauses selects on it.
	wake chan struct{}
	// stop is closed by the first signal; whoever waits elsewhere listens to it.
	stop    chan struct{}
	stopped bool
}

func (s *signals) reset() {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	select {
	case <-s.wake:
	default:
	}
	if s.stop == nil || s.stopped {
		s.stop, s.stopped = make(chan struct{}), false
	}
	s.leftAt, s.shutdown, s.call, s.keepCall, s.ticket = time.Time{}, false, nil, false, nil
}

// peerGone records that the caller has left and aborts what runs for it.
func (s *signals) peerGone(now time.Time) {
	s.mu.Lock()
	if s.leftAt.IsZero() {
		s.leftAt = now
	}
	if s.call != nil && !s.keepCall {
		s.call.Abort(errCallerLeft)
	}
	s.nudge()
	s.mu.Unlock()
}

// end records that the gateway is shutting down and aborts what runs.
func (s *signals) end() {
	s.mu.Lock()
	s.shutdown = true
	if s.call != nil {
		s.call.Abort(errShutdown)
	}
	s.nudge()
	s.mu.Unlock()
}

// nudge wakes whatever the exchange waits on. mu is held.
func (s *signals) nudge() {
	if !s.stopped {
		s.stopped = true
		close(s.stop)
	}
	if s.ticket != nil {
		s.ticket.Cancel()
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// running publishes the call to abort; nil when there is none any more. After it returns no
// earlier call can be reached. A signal that came before is delivered at once.
func (s *signals) running(c *upstream.Call) {
	s.mu.Lock()
	s.call = c
	if c != nil {
		switch {
		case s.shutdown:
			c.Abort(errShutdown)
		case !s.leftAt.IsZero():
			c.Abort(errCallerLeft)
		}
	}
	s.mu.Unlock()
}

// queued publishes the place in a queue to give up; nil when there is none any more.
func (s *signals) queued(t *limit.Ticket) {
	s.mu.Lock()
	s.ticket = t
	if t != nil && s.stopped {
		t.Cancel()
	}
	s.mu.Unlock()
}

// done is closed once nothing more may be started.
func (s *signals) done() <-chan struct{} { return s.stop }

// keep lets the running call survive the caller's leaving.
func (s *signals) keep() {
	s.mu.Lock()
	s.keepCall = true
	s.mu.Unlock()
}

// gone reports whether the caller has left.
func (s *signals) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.leftAt.IsZero()
}

// left returns when the caller left, zero if it has not.
func (s *signals) left() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftAt
}

// ending reports whether the gateway is shutting down.
func (s *signals) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown
}

// over reports whether nothing more may be started.
func (s *signals) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shutdown || !s.leftAt.IsZero()
}

// pause waits until t, a signal, or a change that the caller of pause listens to. It reports
// whether t was reached.
func (s *signals) pause(t time.Time, now func() time.Time, changed <-chan struct{}) bool {
	d := t.Sub(now())
	if d <= 0 {
		return true
	}
	if s.over() {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.wake:
	case <-changed:
	}
	return false
}
