package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/sink"
)

const (
	batchBytes  = 256 << 10 // uncompressed; some 400 events, which compress to about a tenth
	batchAge    = time.Second
	unsentBytes = 16 << 20 // what a server may be behind before the oldest batch is dropped
)

// server sends batches of events to a server that takes OPA's decision logs.
type server struct {
	to   *sink.Server
	log  *slog.Logger
	lost *losses

	mu      sync.Mutex
	batches []*batch // the last one may still grow
	bytes   int      // of all of them
	closing bool

	grown  chan struct{} // a batch was begun or is full, or the server is closing
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// batch is one body in the making: a JSON array without its end.
type batch struct {
	body   []byte
	events int64
	began  time.Time
}

func newServer(o *Options, lost *losses) (*server, error) {
	to, err := sink.NewServer(sink.At(o.URL, "logs"), o.Peer)
	if err != nil {
		return nil, err
	}
	s := &server{to: to, log: o.Log, lost: lost, grown: make(chan struct{}, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run()
	return s, nil
}

// add puts an event into the batch that grows. Past the bound the oldest batch is dropped.
func (s *server) add(now time.Time, event []byte) {
	s.mu.Lock()
	var b *batch
	if n := len(s.batches); n > 0 && len(s.batches[n-1].body)+len(event) < batchBytes {
		b = s.batches[n-1]
	}
	begun := b == nil
	if begun {
		b = &batch{began: now}
		s.batches = append(s.batches, b)
	}
	before := len(b.body)
	if b.events == 0 {
		b.body = append(b.body, '[')
	} else {
		b.body = append(b.body, ',')
	}
	b.body = append(b.body, event...)
	b.events++
	s.bytes += len(b.body) - before
	var dropped int64
	for s.bytes > unsentBytes && len(s.batches) > 1 {
		oldest := s.batches[0]
		s.batches = s.batches[1:]
		s.bytes -= len(oldest.body)
		dropped += oldest.events
	}
	s.mu.Unlock()
	s.lost.add(dropped)
	if begun {
		s.signal()
	}
}

func (s *server) signal() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

// close sends what is there until ctx ends and waits for the goroutine.
func (s *server) close(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.signal()
	defer context.AfterFunc(ctx, s.cancel)()
	<-s.done
	s.cancel()
	s.to.Close()
}

func (s *server) run() {
	defer close(s.done)
	for {
		b, over := s.next()
		if over {
			return
		}
		if b != nil {
			s.send(b)
		}
	}
}

// next waits for a batch that is full or old enough and takes it.
func (s *server) next() (b *batch, over bool) {
	wait := time.NewTimer(batchAge)
	defer wait.Stop()
	for {
		s.mu.Lock()
		switch n := len(s.batches); {
		case n == 0 && s.closing:
			s.mu.Unlock()
			return nil, true
		case n == 0:
			wait.Stop()
		case n > 1, s.closing, time.Since(s.batches[0].began) >= batchAge:
			b = s.batches[0]
			s.batches = s.batches[1:]
			s.bytes -= len(b.body)
			s.mu.Unlock()
			return b, false
		default:
			wait.Reset(batchAge - time.Since(s.batches[0].began))
		}
		s.mu.Unlock()
		select {
		case <-s.grown:
		case <-wait.C:
		}
	}
}

// send posts a batch until the server has it, says that it never will, or the log ends.
func (s *server) send(b *batch) {
	body := compressed(append(b.body, ']'))
	failing := false
	for pause := sink.FirstPause; ; pause = pause.Next() {
		err := s.to.Post(s.ctx, body, true)
		if err == nil {
			if failing {
				s.log.Info(worksMessage, "url", s.to.Shown())
			}
			return
		}
		if sink.Final(err) || s.ctx.Err() != nil {
			s.lost.add(b.events)
			s.log.Error("the decision log's server did not take events", "url", s.to.Shown(), "events", b.events, "error", err.Error())
			return
		}
		if !failing {
			failing = true
			s.log.Error(failsMessage, "url", s.to.Shown(), "error", err.Error())
		}
		pause.Wait(s.ctx.Done())
	}
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // to memory
	_ = w.Close()
	return b.Bytes()
}
