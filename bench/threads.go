package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// runThreads is closed mode on Go's sockets, a goroutine a connection: for TLS, and for what
// TLS is compared with.
func runThreads(j *job, _ io.Writer) (*tally, error) {
	if j.Mode != closed {
		return nil, errors.New("with TLS or threads the load is closed")
	}
	sum := &tally{Latency: newHistogram(), First: newHistogram()}
	var all []*thread
	for i := range j.Connections {
		conn, err := net.Dial("tcp4", j.Addr)
		if err != nil {
			return nil, err
		}
		if j.TLS {
			t := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // it verifies no identity; there is one machine
			if err := t.Handshake(); err != nil {
				return nil, err
			}
			conn = t
		}
		th := &thread{job: j, conn: conn, turn: i, buffer: make([]byte, 32<<10), tally: &tally{Latency: newHistogram(), First: newHistogram()}}
		th.in = message{first: th.status, body: th.piece}
		all = append(all, th)
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for _, t := range all {
		wg.Go(func() { t.run(begin.Add(j.Duration)) })
	}
	wg.Wait()
	sum.Elapsed = time.Since(begin)
	for _, t := range all {
		t.conn.Close()
		sum.add(t.tally)
	}
	return sum, nil
}

// add sums up.
func (t *tally) add(o *tally) {
	t.Requests += o.Requests
	t.Errors += o.Errors
	t.Bytes += o.Bytes
	t.Elapsed += o.Elapsed
	t.CPU += o.CPU
	t.Examples = append(t.Examples, o.Examples...)
	t.Examples = t.Examples[:min(len(t.Examples), 3)]
	t.Latency.merge(o.Latency)
	t.First.merge(o.First)
}

func (h *histogram) merge(o histogram) {
	if h.Histogram == nil {
		*h = newHistogram()
	}
	if o.Histogram != nil {
		h.Merge(o.Histogram)
	}
}

// thread is one connection with its goroutine.
type thread struct {
	*job
	conn   net.Conn
	turn   int
	in     message
	buffer []byte
	body   []byte
	bad    error
	begin  time.Time
	tally  *tally
}

func (t *thread) run(end time.Time) {
	for t.begin = time.Now(); t.begin.Before(end); t.begin = time.Now() {
		_ = t.conn.SetDeadline(t.begin.Add(grace))
		if err := t.once(); err != nil {
			t.tally.fail(err)
			return
		}
	}
}

func (t *thread) once() error {
	t.body, t.bad = t.body[:0], nil
	if _, err := t.conn.Write(t.Requests[t.turn%len(t.Requests)]); err != nil {
		return err
	}
	t.turn++
	for whole := false; !whole; {
		n, err := t.conn.Read(t.buffer)
		if err != nil {
			return err
		}
		if _, whole, err = t.in.feed(t.buffer[:n]); err != nil {
			return err
		}
	}
	if t.bad == nil {
		t.bad = t.Want.verify(t.body, len(t.body))
	}
	if t.bad != nil {
		return t.bad
	}
	t.tally.Requests++
	t.tally.Bytes += int64(len(t.body))
	t.tally.Latency.record(time.Since(t.begin))
	return nil
}

func (t *thread) status(line []byte) error {
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		t.bad = errors.New(string(line))
	}
	return nil
}

func (t *thread) piece(p []byte) { t.body = append(t.body, p...) }
