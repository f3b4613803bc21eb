package flow

import (
	"sync"
	"sync/atomic"
)

// registry knows the exchanges that are running, so that a drain can end them. It is sharded:
// no lock is shared by all requests.
type registry struct {
	next   atomic.Uint32
	shards [64]registryShard
}

type registryShard struct {
	mu    sync.Mutex
	first *Exchange
	ended bool // whoever enters from now on is ended at once
	n     int
	_     [32]byte
}

// enter adds x. If the registry has been ended, x is told at once.
func (r *registry) enter(x *Exchange) {
	s := &r.shards[r.next.Add(1)%uint32(len(r.shards))]
	s.mu.Lock()
	x.shard, x.prev, x.next = s, nil, s.first
	if s.first != nil {
		s.first.prev = x
	}
	s.first = x
	s.n++
	if s.ended {
		x.sig.end()
	}
	s.mu.Unlock()
}

// leave removes x: after it returns nobody reaches x through the registry.
func (x *Exchange) leave() {
	s := x.shard
	s.mu.Lock()
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		s.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	}
	s.n--
	s.mu.Unlock()
	x.shard, x.prev, x.next = nil, nil, nil
}

// end tells every exchange, and every one that enters later, that the gateway shuts down.
func (r *registry) end() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.ended = true
		for x := s.first; x != nil; x = x.next {
			x.sig.end()
		}
		s.mu.Unlock()
	}
}

// before reports whether an exchange of an earlier generation is running.
func (r *registry) before(generation uint64) bool {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for x := s.first; x != nil; x = x.next {
			if x.gen.Number < generation {
				s.mu.Unlock()
				return true
			}
		}
		s.mu.Unlock()
	}
	return false
}

// running counts the exchanges.
func (r *registry) running() int {
	n := 0
	for i := range r.shards {
		r.shards[i].mu.Lock()
		n += r.shards[i].n
		r.shards[i].mu.Unlock()
	}
	return n
}
