package wasm

import (
	"errors"
	"sync"
	"time"
)

// pool holds a plugin's instances: those that rest, the last used one on top, and how many work.
// There are never more than size of them, but for the moment in which a fresh one takes the
// place of the last old one. Events may use all; other operations half, so that a burst of large
// requests does not hold up the streams.
type pool struct {
	name  string
	size  int
	start func() (*instance, error) // made outside the lock, in a goroutine of its own

	mu       sync.Mutex
	idle     []*instance
	total    int // resting and working
	starting int
	busy     int
	bulk     int // of them, with operations that are not urgent
	urgent   queue
	patient  queue
	circuit  circuit
	closed   bool
	drained  chan struct{} // made by close, closed when nothing works or starts any more
}

// Wait bounds the wait for an instance. The zero value waits for as long as it takes.
type Wait struct {
	Deadline time.Time       // zero: none
	Cancel   <-chan struct{} // nil: none
}

// waiter is a call that waits for an instance. It is kept for the next one that must.
type waiter struct {
	ready      chan struct{} // has one place
	timer      *time.Timer
	prev, next *waiter
	queue      *queue // nil once it was served
	got        *instance
	failed     error
}

var waiters = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{ready: make(chan struct{}, 1), timer: t}
}}

// queue is a list of waiters, first come first served.
type queue struct {
	head, tail *waiter
	length     int
}

func (q *queue) push(w *waiter) {
	w.queue, w.prev, w.next = q, q.tail, nil
	if q.tail != nil {
		q.tail.next = w
	} else {
		q.head = w
	}
	q.tail = w
	q.length++
}

func (q *queue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	w.queue, w.prev, w.next = nil, nil, nil
	q.length--
}

// half is how many calls that are not urgent may work at a time.
func (p *pool) half() int { return max(1, p.size/2) }

func (p *pool) fail(r Reason, err error) error { return &Failure{Plugin: p.name, Reason: r, Err: err} }

// acquire returns an instance, which must be given back. The error is a *Failure.
func (p *pool) acquire(urgent bool, wait Wait) (*instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, p.fail(Closed, nil)
	}
	if p.circuit.open() && !p.circuit.admit(nanotime()) {
		p.mu.Unlock()
		return nil, p.fail(Circuit, nil)
	}
	if i := p.take(urgent); i != nil {
		p.mu.Unlock()
		return i, nil
	}
	w := waiters.Get().(*waiter)
	if urgent {
		p.urgent.push(w)
	} else {
		p.patient.push(w)
	}
	p.want()
	p.mu.Unlock()
	return p.await(w, urgent, wait)
}

func (p *pool) await(w *waiter, urgent bool, wait Wait) (*instance, error) {
	reason := Busy
	var timeout <-chan time.Time
	if !wait.Deadline.IsZero() {
		w.timer.Reset(time.Until(wait.Deadline))
		timeout = w.timer.C
	}
	served := false
	select {
	case <-w.ready:
		served = true
	case <-timeout:
	case <-wait.Cancel:
		reason = Cancelled
	}
	w.timer.Stop()
	if !served {
		p.mu.Lock()
		if w.queue != nil {
			w.queue.remove(w)
			p.mu.Unlock()
			waiters.Put(w)
			return nil, p.fail(reason, nil)
		}
		p.mu.Unlock()
		<-w.ready // it was served at this very moment
	}
	i, err := w.got, w.failed
	w.got, w.failed = nil, nil
	waiters.Put(w)
	if err == nil && !served {
		p.give(i, urgent, unused)
		return nil, p.fail(reason, nil)
	}
	return i, err
}

// take takes a resting instance, if the operation may have one now.
func (p *pool) take(urgent bool) *instance {
	if len(p.idle) == 0 || !urgent && p.bulk >= p.half() {
		return nil
	}
	i := p.idle[len(p.idle)-1]
	p.idle[len(p.idle)-1] = nil
	p.idle = p.idle[:len(p.idle)-1]
	p.busy++
	if !urgent {
		p.bulk++
	}
	return i
}

// outcome is what became of an instance that is given back.
type outcome uint8

const (
	unused outcome = iota
	worked
	broken
)

// give gives an instance back.
func (p *pool) give(i *instance, urgent bool, what outcome) {
	p.mu.Lock()
	p.busy--
	if !urgent {
		p.bulk--
	}
	var gone *instance
	switch {
	case what == broken:
		gone = i
		p.broke()
	case p.closed, i.worn() && len(p.idle) > 0:
		gone = i
	default:
		p.idle = append(p.idle, i)
	}
	if what == worked {
		p.circuit.success()
	}
	if gone != nil {
		p.total--
	}
	p.refresh(what == broken)
	p.serve()
	p.settle()
	p.mu.Unlock()
	if gone != nil {
		gone.plugin.discard(gone)
	}
}

// broke records a failure of the guest's. With the circuit open, those who wait are sent away.
func (p *pool) broke() {
	if p.circuit.failure(nanotime()) {
		p.dismiss(p.fail(Circuit, nil))
	}
}

// refresh starts what takes the place of a broken or a worn instance.
func (p *pool) refresh(lost bool) {
	if p.closed || p.circuit.open() || p.starting > 0 {
		return
	}
	if lost || p.total == 1 && len(p.idle) == 1 && p.idle[0].worn() {
		p.launch()
	}
}

// want starts instances for those who wait.
func (p *pool) want() {
	useful := p.urgent.length + min(p.patient.length, p.half()-p.bulk)
	for p.starting < useful && p.total+p.starting < p.size {
		p.launch()
	}
}

func (p *pool) launch() {
	p.starting++
	go func() {
		i, err := p.start()
		p.started(i, err)
	}()
}

func (p *pool) started(i *instance, err error) {
	p.mu.Lock()
	p.starting--
	var gone []*instance
	switch {
	case err != nil:
		p.broke()
		if p.total == 0 && p.starting == 0 {
			var failure *Failure
			if !errors.As(err, &failure) {
				err = p.fail(NotStart, err)
			}
			p.dismiss(err)
		}
	case p.closed:
		gone = append(gone, i)
	default:
		// It takes the place of those that are worn.
		fresh := p.idle[:0]
		for _, old := range p.idle {
			if old.worn() {
				gone = append(gone, old)
				p.total--
			} else {
				fresh = append(fresh, old)
			}
		}
		clear(p.idle[len(fresh):])
		p.idle = append(fresh, i)
		p.total++
		p.serve()
	}
	p.settle()
	p.mu.Unlock()
	for _, old := range gone {
		old.plugin.discard(old)
	}
}

// serve hands resting instances to those who wait.
func (p *pool) serve() {
	for p.urgent.head != nil || p.patient.head != nil {
		w, urgent := p.urgent.head, true
		if w == nil {
			w, urgent = p.patient.head, false
		}
		i := p.take(urgent)
		if i == nil {
			if !p.closed && !p.circuit.open() {
				p.want()
			}
			return
		}
		w.queue.remove(w)
		w.got = i
		w.ready <- struct{}{}
	}
}

// dismiss sends away all who wait.
func (p *pool) dismiss(err error) {
	for _, q := range []*queue{&p.urgent, &p.patient} {
		for w := q.head; w != nil; w = q.head {
			q.remove(w)
			w.failed = err
			w.ready <- struct{}{}
		}
	}
}

// settle tells close that nothing works or starts any more.
func (p *pool) settle() {
	if p.closed && p.busy == 0 && p.starting == 0 && p.drained != nil {
		close(p.drained)
		p.drained = nil
	}
}

// close lets nobody in any more and returns a channel that is closed when all have left.
func (p *pool) close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := make(chan struct{})
	p.closed, p.drained = true, done
	p.dismiss(p.fail(Closed, nil))
	for _, i := range p.idle {
		p.total--
		defer i.plugin.discard(i)
	}
	p.idle = nil
	p.settle()
	return done
}
