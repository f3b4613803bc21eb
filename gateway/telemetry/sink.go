package telemetry

import (
	"io"
	"sync"
	"time"
)

// sinkLimit bounds what waits to be written, in bytes: some 4,000 lines.
const sinkLimit = 1 << 20

// sinkPause is how long a line waits for company: one write for many lines.
const sinkPause = 5 * time.Millisecond

// sink is a writer that never blocks: it buffers whole lines for a goroutine that writes
// them, and drops lines when that goroutine falls behind.
type sink struct {
	out     io.Writer
	dropped func(lines int64) []byte // the line that reports dropped ones
	limit   int

	mu      sync.Mutex
	waiting []byte
	lost    int64
	closed  bool
	wake    chan struct{}
	urgent  chan struct{} // half full, or closed
	done    chan struct{}
	err     error // of the last write; read after done
}

func newSink(out io.Writer) *sink {
	s := &sink{out: out, limit: sinkLimit, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write takes one whole line. It always succeeds.
func (s *sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	first := len(s.waiting) == 0
	switch {
	case s.closed:
	case len(s.waiting)+len(line) > s.limit && !first:
		s.lost++
	default:
		s.waiting = append(s.waiting, line...)
	}
	full := len(s.waiting) > s.limit/2
	s.mu.Unlock()
	if first {
		signal(s.wake)
	}
	if full {
		signal(s.urgent)
	}
	return len(line), nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (s *sink) run() {
	defer close(s.done)
	var batch []byte
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		<-s.wake
		pause.Reset(sinkPause)
		select {
		case <-pause.C:
		case <-s.urgent:
		}
		s.mu.Lock()
		batch, s.waiting = s.waiting, batch[:0]
		lost, closed := s.lost, s.closed
		s.lost = 0
		s.mu.Unlock()
		if lost > 0 {
			batch = append(batch, s.dropped(lost)...)
		}
		if len(batch) > 0 {
			_, s.err = s.out.Write(batch)
		}
		if closed {
			return
		}
	}
}

func (s *sink) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.wake)
	signal(s.urgent)
	<-s.done
	return s.err
}
