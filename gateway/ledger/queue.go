package ledger

import (
	"sync"
	"time"
)

// entry is one state of a record on its way to the writer: a copy made when an attempt
// was opened or failed, or at last the record itself.
type entry struct {
	rec    *Record
	origin *Record
}

func (e entry) final() bool { return e.rec == e.origin }

// ticket is what those wait for who need the commit of what they queued.
type ticket struct {
	done chan struct{}
	err  error
}

// shard is one part of the queue. A record keeps to one, so that its states stay in
// order; there are several, so that requests do not share a lock.
type shard struct {
	mu      sync.Mutex
	entries []entry
	spare   []entry // the other buffer, while the writer has emptied it
	ticket  *ticket
	space   chan struct{} // closed when the writer takes the entries; nil while nobody waits
	ended   bool          // the writer has stopped
	_       [64]byte      // a cache line of its own
}

const maxShards = 8

func newShards(limit int) []shard { return make([]shard, min(maxShards, max(1, limit))) }

// push queues an entry. With room it waits until the shard has fewer entries than the
// limit, at most MaxWait, or until cancel is closed; without it only appends. With want
// it returns the ticket of the group that the entry is in.
func (l *Ledger) push(e entry, room, want bool, cancel <-chan struct{}) (*ticket, error) {
	s := e.origin.shard
	s.mu.Lock()
	if room && len(s.entries) >= l.shardLimit {
		if err := l.waitForRoom(s, cancel); err != nil { // unlocks on error
			return nil, err
		}
	}
	if s.ended {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	s.entries = append(s.entries, e)
	n := len(s.entries)
	var t *ticket
	if want {
		if s.ticket == nil {
			s.ticket = &ticket{done: make(chan struct{})}
		}
		t = s.ticket
	}
	s.mu.Unlock()
	l.queued.Add(1)
	if n == 1 {
		signal(l.wake)
	}
	if n >= (l.shardLimit+1)/2 {
		signal(l.urgent)
	}
	return t, nil
}

// waitForRoom is called with the lock held and returns with it, but not on an error.
func (l *Ledger) waitForRoom(s *shard, cancel <-chan struct{}) error {
	timer := time.NewTimer(l.maxWait)
	defer timer.Stop()
	for len(s.entries) >= l.shardLimit {
		if s.space == nil {
			s.space = make(chan struct{})
		}
		space := s.space
		s.mu.Unlock()
		signal(l.wake)
		signal(l.urgent)
		select {
		case <-space:
		case <-cancel:
			return ErrCancelled
		case <-timer.C:
			return ErrUnavailable
		case <-l.stop:
			return ErrClosed
		}
		s.mu.Lock()
	}
	return nil
}

// take empties the shard into the writer's hands; give returns the buffer.
func (s *shard) take() ([]entry, *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken, t := s.entries, s.ticket
	s.entries, s.spare, s.ticket = s.spare[:0], nil, nil
	if s.space != nil {
		close(s.space)
		s.space = nil
	}
	return taken, t
}

// end lets nothing more in and reports whether the shard is empty.
func (s *shard) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = len(s.entries) == 0
	return s.ended
}

func (s *shard) give(buffer []entry) {
	clear(buffer)
	if cap(buffer) > 4096 { // a burst's memory is not kept
		return
	}
	s.mu.Lock()
	s.spare = buffer[:0]
	s.mu.Unlock()
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
