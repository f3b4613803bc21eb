// Package backlog owns the bounded hand-over of what requests leave for one goroutine: what is
// logged or compared after the answer has gone its way.
//
//	Add (any goroutine) → Take (one goroutine, now and then)
//
// Adding never waits, wakes nobody and, once the backlog has had its usual size, allocates
// nothing. What does not fit is dropped and counted. The package must not know what it carries.
package backlog

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// stripes keeps requests that run at once out of each other's way.
const stripes = 8

// Backlog holds values until they are taken. Values that one goroutine adds may be taken in
// another order. Make one with New.
type Backlog[T any] struct {
	stripes [stripes]stripe[T]
	limit   int // of one stripe
	urgent  chan struct{}
	lost    atomic.Int64
	closed  atomic.Bool
}

type stripe[T any] struct {
	mu      sync.Mutex
	waiting []T
	spare   []T // the taker's: empty, swapped in
	_       [64]byte
}

// New makes a backlog of at most that many values.
func New[T any](limit int) *Backlog[T] {
	return &Backlog[T]{limit: max(1, limit/stripes), urgent: make(chan struct{}, 1)}
}

// Add leaves a value. It is dropped and counted where there is no room, and dropped after Close.
func (b *Backlog[T]) Add(v T) {
	if b.closed.Load() {
		return
	}
	s := &b.stripes[rand.Uint32N(stripes)]
	s.mu.Lock()
	n := len(s.waiting)
	if n < b.limit {
		s.waiting = append(s.waiting, v)
	}
	s.mu.Unlock()
	switch {
	case n >= b.limit:
		b.lost.Add(1)
	case n == b.limit/2:
		select {
		case b.urgent <- struct{}{}:
		default:
		}
	}
}

// Urgent is readable once a part of the backlog is half full: it should be taken now.
func (b *Backlog[T]) Urgent() <-chan struct{} { return b.urgent }

// Take appends all that waits. One goroutine takes at a time.
func (b *Backlog[T]) Take(to []T) []T {
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		s.waiting, s.spare = s.spare, s.waiting
		s.mu.Unlock()
		to = append(to, s.spare...)
		clear(s.spare)
		s.spare = s.spare[:0]
	}
	return to
}

// Lost returns how many values were dropped for want of room since it was asked last.
func (b *Backlog[T]) Lost() int64 { return b.lost.Swap(0) }

// Close ends the hand-over: what waits can still be taken.
func (b *Backlog[T]) Close() { b.closed.Store(true) }
