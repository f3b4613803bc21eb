package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	batchBytes    = 256 << 10 // uncompressed; some 400 events, which compress to about a tenth
	batchAge      = time.Second
	unsentBytes   = 16 << 20 // what a server may be behind before the oldest batch is dropped
	postTimeout   = 30 * time.Second
	shortestPause = 100 * time.Millisecond
	longestPause  = 30 * time.Second
)

// server sends batches of events to a server that takes OPA's decision logs.
type server struct {
	url    string
	client *http.Client
	log    *slog.Logger
	lost   *losses

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

func newServer(to string, log *slog.Logger, lost *losses) *server {
	s := &server{url: logsOf(to), log: log, lost: lost, grown: make(chan struct{}, 1), done: make(chan struct{})}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1
	s.client = &http.Client{
		Transport: transport, Timeout: postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.run()
	return s
}

// logsOf is where OPA sends decision logs: the service's URL and /logs.
func logsOf(to string) string {
	u, err := url.Parse(to)
	if err != nil || strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/logs") {
		return to // the configuration has checked it
	}
	return u.JoinPath("logs").String()
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
	s.client.CloseIdleConnections()
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
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := s.post(body)
		if err == nil {
			if failing {
				s.log.Info(worksMessage, "url", redacted(s.url))
			}
			return
		}
		var refused *refused
		final := errors.As(err, &refused) && refused.final()
		if final || s.ctx.Err() != nil {
			s.lost.add(b.events)
			s.log.Error("the decision log's server did not take events", "url", redacted(s.url), "events", b.events, "error", err.Error())
			return
		}
		if !failing {
			failing = true
			s.log.Error(failsMessage, "url", redacted(s.url), "error", err.Error())
		}
		t := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-t.C:
		case <-s.ctx.Done():
			t.Stop()
		}
	}
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // to memory
	_ = w.Close()
	return b.Bytes()
}

func (s *server) post(body []byte) error {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "interlock")
	resp, err := s.client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the address: it may hold a password
		}
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // reading only
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &refused{resp.StatusCode}
	}
	return nil
}

// refused is an answer of the server other than success.
type refused struct{ status int }

func (r *refused) Error() string { return fmt.Sprintf("the server answered %d", r.status) }

// final reports whether the same events would meet the same answer: what is wrong is with
// them, and not with the server, its load, its address or who may call it.
func (r *refused) final() bool {
	switch r.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func redacted(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}
