package main

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// mode is how requests arrive.
type mode string

const (
	// closed: each connection sends its next request when the last was answered. It finds
	// what a target can do, and says little of latency: a slow target is asked less.
	closed mode = "closed"
	// opened: requests arrive at a constant rate whatever becomes of them. Latency counts from
	// the moment at which a request was to be sent, so that one that had to wait for a
	// connection, or for the load itself, counts with its wait (coordinated omission).
	opened mode = "open"
	// hold: every connection sends one request, a thousand or so a second, and is done with
	// the answer's end.
	hold mode = "hold"
)

// job is one load, given to a process of its own as JSON.
type job struct {
	Mode        mode          `json:"mode"`
	Addr        string        `json:"addr"`
	Requests    [][]byte      `json:"requests"` // whole, heads included; sent in turn
	Want        want          `json:"want"`
	Connections int           `json:"connections"` // open: at first; more are made up to ten times as many
	Rate        float64       `json:"rate"`        // open: requests a second
	Duration    time.Duration `json:"duration"`
	Count       int           `json:"count"`  // closed: so many requests at most; 0 = any
	Bucket      time.Duration `json:"bucket"` // of the time line; 0 = none
	// TLS: the caller's side is encrypted (nothing is verified). Threads: the load runs on Go's
	// own sockets, as it does with TLS, so that both can be compared. Closed mode only.
	TLS     bool `json:"tls"`
	Threads bool `json:"threads"`
}

// want is what an answer must be. Its status is 200 and its body is whole in any case.
type want struct {
	Stream bool `json:"stream"` // it ends with [DONE]
	Events int  `json:"events"` // with so many tokens; 0 = not counted
	Bytes  int  `json:"bytes"`  // at least so many
}

// tally is what a job came to. Times are in nanoseconds.
type tally struct {
	Requests int           `json:"requests"` // answered and verified
	Errors   int           `json:"errors"`
	Examples []string      `json:"examples"` // of the errors, a few
	Elapsed  time.Duration `json:"elapsed"`  // to the last answer
	Bytes    int64         `json:"bytes"`    // of bodies
	Latency  histogram     `json:"latency"`  // to the end of the answer
	First    histogram     `json:"first"`    // to the first token of a stream
	Line     []bucket      `json:"line"`
	CPU      time.Duration `json:"cpu"` // of the load itself
}

func (t *tally) perSecond() float64 { return divided(float64(t.Requests), t.Elapsed.Seconds()) }

func (t *tally) fail(err error) {
	t.Errors++
	if len(t.Examples) < 3 {
		t.Examples = append(t.Examples, fmt.Sprintf("%.300s", err))
	}
}

// bucket is a part of the time line, by the time of the answers.
type bucket struct {
	Requests int           `json:"requests"`
	Errors   int           `json:"errors"`
	Slowest  time.Duration `json:"slowest"`
}

// histogram is an HDR histogram from 1 µs to 2 minutes with three digits, in steps that are
// never above 1 µs where it matters. As JSON it is its standard compressed form.
type histogram struct{ *hdrhistogram.Histogram }

func newHistogram() histogram {
	return histogram{hdrhistogram.New(int64(time.Microsecond), int64(2*time.Minute), 3)}
}

func (h histogram) record(d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), int64(time.Microsecond)), int64(2*time.Minute)))
}

// at is the quantile, 0 to 1.
func (h histogram) at(q float64) time.Duration {
	if h.Histogram == nil {
		return 0
	}
	return time.Duration(h.ValueAtQuantile(100 * q))
}

// MarshalText implements [encoding.TextMarshaler].
func (h histogram) MarshalText() ([]byte, error) {
	if h.Histogram == nil {
		return nil, nil
	}
	return h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *histogram) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var err error
	h.Histogram, err = hdrhistogram.Decode(b)
	return err
}
