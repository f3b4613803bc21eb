package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// sample is one load on one target.
type sample struct {
	*tally
	cpu time.Duration // of the target; 0 = not known
}

// perRequest is the target's processor time in µs.
func (s *sample) perRequest() float64 {
	return float64(s.cpu.Nanoseconds()) / 1000 / float64(max(s.Requests, 1))
}

// settle is how long work that a target has put off (the ledger's writer, the log's) is waited
// for before its processor time is read.
const settle = 80 * time.Millisecond

// shoot does a job on a target and reads its processor time around it.
func (s *section) shoot(ctx context.Context, t *target, j job) (*sample, error) {
	var before, after time.Duration
	var err error
	j.Addr = t.addr
	j.TLS = j.TLS || t.tls
	if t.process != nil {
		if before, err = t.cpu(); err != nil {
			return nil, err
		}
	}
	sum, err := j.do(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	s.count(t, sum)
	if t.process != nil {
		if err := pass(ctx, settle); err != nil {
			return nil, err
		}
		if after, err = t.cpu(); err != nil {
			return nil, err
		}
	}
	return &sample{sum, after - before}, nil
}

// pass lets time go by that is measured, or must not be: idle processes have nothing else to wait
// for.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// count adds a tally's errors to the section's.
func (s *section) count(t *target, sum *tally) {
	if sum.Errors == 0 && sum.Requests == 0 {
		sum.fail(fmt.Errorf("no request was answered"))
	}
	s.Requests += sum.Requests
	s.Errors += sum.Errors
	for _, e := range sum.Examples {
		if len(s.Examples) < 10 {
			s.Examples = append(s.Examples, t.name+": "+e)
		}
	}
}

// warm fills pools and caches: a short closed load that counts for nothing but its errors.
func (s *section) warm(ctx context.Context, t *target, j job) error {
	j.Mode, j.Duration, j.Rate, j.Bucket = closed, 150*time.Millisecond, 0, 0
	_, err := s.shoot(ctx, t, j)
	return err
}

// alternate runs the shots of a round on every target in turn, and the next round in the
// opposite order, so that what changes on the machine meets all of them.
func alternate(rounds int, targets []*target, shot func(t *target) error) error {
	for round := range rounds {
		order := slices.Clone(targets)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, t := range order {
			if err := shot(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// series is the samples of each target, by its name, in the order of the rounds.
type series map[string][]*sample

// run measures a job on targets in alternation. request makes the job's requests for each.
func (s *section) run(ctx context.Context, targets []*target, j job, request func(*target) [][]byte) (series, error) {
	out := series{}
	for _, t := range targets {
		j.Requests = request(t)
		if err := s.warm(ctx, t, j); err != nil {
			return nil, err
		}
	}
	err := alternate(s.rounds, targets, func(t *target) error {
		j.Requests = request(t)
		m, err := s.shoot(ctx, t, j)
		if err == nil {
			out[t.name] = append(out[t.name], m)
		}
		return err
	})
	return out, err
}

// of is the requests of one kind.
func of(k kind) func(*target) [][]byte {
	return func(t *target) [][]byte { return [][]byte{t.request(k)} }
}

// values are a figure of every round.
func values(list []*sample, figure func(*sample) float64) []float64 {
	out := make([]float64, len(list))
	for i, m := range list {
		out[i] = figure(m)
	}
	return out
}

// The figures of a sample.
func perRequest(m *sample) float64 { return m.perRequest() }
func perSecond(m *sample) float64  { return m.perSecond() }

func quantile(q float64) func(*sample) float64 {
	return func(m *sample) float64 { return micros(m.Latency.at(q)) }
}

func firstQuantile(q float64) func(*sample) float64 {
	return func(m *sample) float64 { return micros(m.First.at(q)) }
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// paired combines two targets' values round by round.
func paired(a, b []float64, how func(a, b float64) float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = how(a[i], b[i])
	}
	return out
}

func divided(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func less(a, b float64) float64 { return a - b }

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
