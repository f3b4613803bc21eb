package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The model that every request names, and the one whose streams are slow.
const (
	benchModel = "bench-model"
	slowModel  = "bench-slow"
)

// benchKey is the caller's key in the gateway's file.
const benchKey = "ilk-bench-0123456789"

// kind is the shape of the requests of one measurement.
type kind string

const (
	kindPost   kind = "post"
	kindStream kind = "stream"
	kindSlow   kind = "slow"
)

// request is the bytes of one request, about 0.3 KB of body.
func (k kind) request() []byte {
	model, stream := benchModel, k != kindPost
	if k == kindSlow {
		model = slowModel
	}
	body := fmt.Sprintf(`{"model":"%s","stream":%t,"messages":[{"role":"system","content":"You answer in one short paragraph and you do not make things up."},{"role":"user","content":"What does a proxy between a program and a language model cost, if it keeps a record of every attempt and never sends one twice?"}]}`, model, stream)
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + benchKey +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// tally is what a load of requests came to. Latencies are to the end of the answer.
type tally struct {
	Requests int           `json:"requests"`
	Elapsed  time.Duration `json:"elapsed"`
	P50      time.Duration `json:"p50"`
	P90      time.Duration `json:"p90"`
	P99      time.Duration `json:"p99"`
	Max      time.Duration `json:"max"`
}

func (t tally) perSecond() float64 { return float64(t.Requests) / t.Elapsed.Seconds() }

// runLoad keeps a number of connections busy, each with one request at a time, and prints
// the tally as JSON. Any answer that is not the one expected ends it with an error.
func runLoad(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(partLoad, flag.ContinueOnError)
	addr := f.String("addr", "", "")
	n := f.Int("connections", 1, "")
	what := f.String("kind", string(kindPost), "")
	long := f.Duration("duration", time.Second, "")
	if err := f.Parse(args); err != nil {
		return err
	}
	request := kind(*what).request()
	callers := make([]*caller, *n)
	for i := range callers {
		c, err := net.Dial("tcp4", *addr)
		if err != nil {
			return err
		}
		callers[i] = &caller{conn: c, in: bufio.NewReaderSize(c, 8<<10), request: request, events: kind(*what) == kindStream}
	}
	begin := time.Now()
	end := begin.Add(*long)
	var wg sync.WaitGroup
	for i, c := range callers {
		if kind(*what) == kindSlow && i%50 == 49 {
			time.Sleep(10 * time.Millisecond) // a thousand callers do not come in one instant
		}
		wg.Go(func() { c.run(ctx, end) })
	}
	wg.Wait()
	t := tally{Elapsed: time.Since(begin)}
	var all []time.Duration
	for _, c := range callers {
		c.conn.Close()
		if c.err != nil {
			return c.err
		}
		all = append(all, c.took...)
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	t.Requests = len(all)
	t.P50, t.P90, t.P99, t.Max = at(.5), at(.9), at(.99), at(1)
	return json.NewEncoder(stdout).Encode(t)
}

// caller is one keep-alive connection.
type caller struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	events  bool // the answer must be a whole stream of streamEvents
	body    []byte
	took    []time.Duration
	err     error
}

// run sends requests one after another until the end; at least one.
func (c *caller) run(ctx context.Context, end time.Time) {
	for ctx.Err() == nil {
		begin := time.Now()
		if len(c.took) > 0 && begin.After(end) {
			return
		}
		_ = c.conn.SetDeadline(begin.Add(time.Minute))
		if c.err = c.once(); c.err != nil {
			return
		}
		c.took = append(c.took, time.Since(begin))
	}
	c.err = ctx.Err()
}

func (c *caller) once() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	chunked, err := c.answer()
	if err != nil {
		return err
	}
	if chunked && !bytes.HasSuffix(c.body, []byte("data: [DONE]\n\n")) {
		return fmt.Errorf("a stream ended with %q", c.body[max(0, len(c.body)-100):])
	}
	if c.events {
		if n := bytes.Count(c.body, []byte(`"content":" token"`)); n != streamEvents {
			return fmt.Errorf("a stream with %d events in place of %d", n, streamEvents)
		}
	}
	return nil
}

// answer reads a whole answer into body.
func (c *caller) answer() (chunked bool, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		rest := make([]byte, 600)
		status := string(bytes.TrimSpace(line))
		n, _ := c.in.Read(rest)
		return false, fmt.Errorf("%s: %s", status, rest[:n])
	}
	length := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return false, err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := header(line, "content-length:"); ok {
			length, _ = strconv.Atoi(string(v))
		} else if v, ok := header(line, "transfer-encoding:"); ok {
			chunked = string(v) == "chunked"
		}
	}
	c.body = c.body[:0]
	if !chunked {
		if length < 0 {
			return false, errors.New("an answer without a length")
		}
		return false, c.take(length)
	}
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return true, err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return true, err
		}
		if err := c.take(int(size)); err != nil {
			return true, err
		}
		if _, err := c.in.Discard(2); err != nil || size == 0 {
			return true, err
		}
	}
}

func (c *caller) take(n int) error {
	from := len(c.body)
	c.body = slices.Grow(c.body, n)[:from+n]
	_, err := io.ReadFull(c.in, c.body[from:])
	return err
}
