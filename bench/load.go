package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a load waits for answers when its time is over.
const grace = 10 * time.Second

// runLoad does the job on its standard input and prints the tally as JSON. In hold mode a line
// "open" comes before, when every stream has its first token.
func runLoad(_ context.Context, _ []string, stdout io.Writer) error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	work := runLoop
	if j.TLS || j.Threads {
		work = runThreads
	}
	t, err := work(&j, stdout)
	if err != nil {
		return err
	}
	if t.CPU, err = processTime(0); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(t)
}

// load is a job on one loop.
type load struct {
	*job
	loop    *loop
	addr    *net.TCPAddr
	out     io.Writer
	tally   *tally
	callers []*caller
	idle    []*caller       // the last used is used first
	queue   []time.Duration // arrivals that wait for a connection, by their time
	sent    int             // requests given to a connection
	begin   time.Duration
	begun   int // arrivals so far, of all
	all     int // arrivals in all, 0 = by time
	opened  int // hold: streams that have their first token
	ended   int // hold: streams that have ended
}

func runLoop(j *job, out io.Writer) (*tally, error) {
	addr, err := net.ResolveTCPAddr("tcp4", j.Addr)
	if err != nil {
		return nil, err
	}
	lp, err := newLoop()
	if err != nil {
		return nil, err
	}
	l := &load{job: j, loop: lp, addr: addr, out: out, tally: &tally{Latency: newHistogram(), First: newHistogram()}}
	if j.Mode != hold {
		for range j.Connections {
			c, err := l.connect()
			if err != nil {
				return nil, err
			}
			l.idle = append(l.idle, c)
		}
	}
	l.begin = now()
	switch j.Mode {
	case closed:
		all := l.idle
		l.idle = nil
		for _, c := range all {
			c.send(now())
		}
	case opened:
		l.all = max(1, int(j.Rate*j.Duration.Seconds()))
		l.tick(l.begin)
	case hold:
		l.all = j.Connections
		l.tick(l.begin)
	}
	if j.Mode != hold {
		lp.at(l.begin+j.Duration+grace, last{l})
	}
	if err := lp.run(); err != nil {
		return nil, err
	}
	return l.tally, nil
}

// last ends a load whose answers do not come.
type last struct{ *load }

func (l last) tick(time.Duration) {
	for _, c := range l.callers {
		if c.busy {
			l.tally.fail(errors.New("no answer when the load ended"))
		}
	}
	for range l.queue {
		l.tally.fail(errors.New("not sent when the load ended"))
	}
	l.loop.stop.Store(true)
}

func (l last) ready(uint32)  {}
func (l *load) ready(uint32) {}

// tick is an arrival, in open and hold mode. All that are due arrive.
func (l *load) tick(t time.Duration) {
	if l.Mode == hold {
		for range min(10, l.all-l.begun) {
			l.begun++
			if c, err := l.connect(); err != nil {
				l.tally.fail(err)
				l.done()
			} else {
				c.send(t)
			}
		}
		if l.begun < l.all {
			l.loop.at(t+5*time.Millisecond, l)
		}
		return
	}
	for ; l.begun < l.all; l.begun++ {
		due := l.begin + time.Duration(float64(l.begun)/l.Rate*float64(time.Second))
		if due > t {
			l.loop.at(due, l)
			return
		}
		l.arrive(due)
	}
}

// arrive gives a request to a connection that is free, to a new one, or to the queue.
func (l *load) arrive(due time.Duration) {
	if n := len(l.idle); n > 0 {
		c := l.idle[n-1]
		l.idle = l.idle[:n-1]
		c.send(due)
		return
	}
	if len(l.callers) < 10*l.Connections {
		if c, err := l.connect(); err == nil {
			c.send(due)
			return
		}
	}
	l.queue = append(l.queue, due)
}

// next is called when a connection has its answer, or has failed.
func (l *load) next(c *caller) {
	t := now()
	l.tally.Elapsed = t - l.begin
	switch {
	case l.Mode == hold:
		l.done()
	case l.Mode == closed && t < l.begin+l.Duration && (l.Count == 0 || l.sent < l.Count):
		c.send(t)
	case len(l.queue) > 0:
		due := l.queue[0]
		l.queue = l.queue[1:]
		c.send(due)
	default:
		l.idle = append(l.idle, c)
		over := l.Mode == closed || l.begun == l.all
		if over && len(l.idle) == len(l.callers) {
			l.loop.stop.Store(true)
		}
	}
}

// done is called when a stream of hold mode has ended.
func (l *load) done() {
	if l.ended++; l.ended == l.all {
		l.loop.stop.Store(true)
	}
}

// first is called when a stream has its first token.
func (l *load) first() {
	if l.opened++; l.Mode == hold && l.opened == l.all {
		fmt.Fprintln(l.out, "open")
	}
}

// caller is one keep-alive connection.
type caller struct {
	*load
	fd    int
	life  int // grows with each new connection
	in    message
	out   output
	busy  bool
	due   time.Duration // of the request
	seen  bool          // its first token
	body  []byte        // all of it, or of a long one the end
	bytes int
	bad   error // what is wrong with the answer so far
}

func (l *load) connect() (*caller, error) {
	c := &caller{load: l}
	c.in = message{first: c.status, body: c.piece}
	if err := c.dial(); err != nil {
		return nil, err
	}
	l.callers = append(l.callers, c)
	return c, nil
}

func (c *caller) dial() (err error) {
	if c.fd, err = dial(c.addr); err != nil {
		return err
	}
	return c.loop.add(c.fd, c)
}

func (c *caller) send(due time.Duration) {
	c.busy, c.due, c.seen, c.body, c.bytes, c.bad = true, due, false, c.body[:0], 0, nil
	request := c.Requests[c.sent%len(c.Requests)]
	c.sent++
	if err := c.out.send(c.fd, request); err != nil {
		c.broken(err)
	}
}

func (c *caller) tick(time.Duration) {}

func (c *caller) ready(uint32) {
	if err := c.out.flush(c.fd); err != nil {
		c.broken(err)
		return
	}
	for {
		life := c.life
		n, err := unix.Read(c.fd, c.loop.in[:])
		if err == unix.EAGAIN || err == unix.EINTR {
			return
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			c.broken(err)
			return
		}
		for p := c.loop.in[:n]; len(p) > 0; {
			if !c.busy {
				c.broken(errors.New("an answer that nobody asked for"))
				return
			}
			k, whole, err := c.in.feed(p)
			if err != nil {
				c.broken(err)
				return
			}
			if p = p[k:]; whole {
				c.answered()
				if c.life != life {
					return
				}
			}
		}
		if n < len(c.loop.in) {
			return
		}
	}
}

func (c *caller) status(line []byte) error {
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		c.bad = errors.New(string(line))
	}
	return nil
}

func (c *caller) piece(p []byte) {
	c.bytes += len(p)
	if len(c.body)+len(p) > 64<<10 {
		c.body = append(c.body[:0], p[max(0, len(p)-8<<10):]...)
	} else {
		c.body = append(c.body, p...)
	}
	if c.Want.Stream && !c.seen && bytes.Contains(c.body, []byte(token)) {
		c.seen = true
		c.tally.First.record(now() - c.due)
		c.first()
	}
}

// answered looks at a whole answer.
func (c *caller) answered() {
	took := now() - c.due
	c.busy = false
	if err := c.verify(); err != nil {
		c.count(0, err)
	} else {
		c.tally.Requests++
		c.tally.Bytes += int64(c.bytes)
		c.tally.Latency.record(took)
		c.count(took, nil)
	}
	if c.in.close {
		c.again()
	}
	c.next(c)
}

func (c *caller) count(took time.Duration, err error) {
	if err != nil {
		c.tally.fail(err)
	}
	if c.Bucket == 0 {
		return
	}
	i := int((now() - c.begin) / c.Bucket)
	for len(c.tally.Line) <= i {
		c.tally.Line = append(c.tally.Line, bucket{})
	}
	b := &c.tally.Line[i]
	if b.Slowest = max(b.Slowest, took); err != nil {
		b.Errors++
	} else {
		b.Requests++
	}
}

func (c *caller) verify() error {
	if c.bad != nil {
		return fmt.Errorf("%w: %.200s", c.bad, c.body)
	}
	return c.Want.verify(c.body, c.bytes)
}

// verify looks at a body, or of a long one at its end.
func (w want) verify(body []byte, n int) error {
	switch {
	case n < w.Bytes:
		return fmt.Errorf("an answer of %d bytes in place of %d", n, w.Bytes)
	case w.Stream && !bytes.HasSuffix(body, []byte("data: [DONE]\n\n")):
		return fmt.Errorf("a stream that ends with %q", body[max(0, len(body)-100):])
	case w.Events > 0 && bytes.Count(body, []byte(token)) != w.Events:
		return fmt.Errorf("a stream of %d events in place of %d", bytes.Count(body, []byte(token)), w.Events)
	case !w.Stream && !strings.Contains(string(body[max(0, len(body)-2048):]), lastTok):
		return fmt.Errorf("an answer that ends with %q", body[max(0, len(body)-100):])
	}
	return nil
}

// again replaces the connection by a new one.
func (c *caller) again() {
	c.loop.drop(c.fd)
	c.life++
	c.in = message{first: c.status, body: c.piece}
	c.out = output{}
	if err := c.dial(); err != nil {
		c.tally.fail(err)
		c.loop.stop.Store(true) // the target is gone
	}
}

// broken ends a request with its connection. A connection that ends between requests is
// replaced without a word.
func (c *caller) broken(err error) {
	busy := c.busy
	c.busy = false
	c.again()
	if busy {
		c.count(0, err)
		c.next(c)
	}
}
