package main

import (
	"context"
	"fmt"
	"time"
)

// stallFor is the clock of the stalled route: its first byte may take so long.
const stallFor = 100 * time.Millisecond

// failover measures what a first route that fails costs. Circuits are off, so that it is
// asked, and fails, in every request.
func (s *section) failover(ctx context.Context) error {
	type variant struct {
		name    string
		prepare func(*setting) error
	}
	variants := []variant{
		{"one good route", func(*setting) error { return nil }},
		{"first route: 503", func(set *setting) error { set.first("down", set.base+"/503/v1", nil); return nil }},
		{"first route: refused", func(set *setting) error {
			addr, err := s.r.freeAddr()
			set.first(refusedChannel, "http://"+addr+"/v1", nil)
			return err
		}},
		{"first route: stalled", func(set *setting) error {
			set.first("stalled", set.base+"/stall/v1", object{"timeouts": object{"first_byte": stallFor.String()}})
			return nil
		}},
	}
	var all []*target
	defer func() { s.closeAll(ctx, all) }()
	for _, v := range variants {
		set, err := s.r.setting(v.name)
		if err != nil {
			return err
		}
		set.file["breaker"] = object{"failure_ratio": 0, "consecutive_failures": 0}
		if err := v.prepare(set); err != nil {
			return err
		}
		t, err := set.begin()
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	each := s.each(2 * len(all) * (s.rounds + 1))
	got, err := s.run(ctx, all, job{Mode: closed, Connections: busy, Duration: max(each, 2*stallFor), Want: post.want}, of(post))
	if err != nil {
		return err
	}
	// Half of what one with a failing route can do, and no more than the load has connections
	// for where each request waits for the stalled route.
	rate := min(median(values(got[all[1].name], perSecond))/2, 9*busy/stallFor.Seconds())
	const same = "same rate"
	calm, err := s.run(ctx, all, job{Mode: opened, Rate: rate, Connections: busy, Duration: max(each, 2*stallFor), Want: post.want}, of(post))
	if err != nil {
		return err
	}
	plain := all[0].name
	hops := func(a, b float64) float64 { return divided(a, 2*b) }
	var rows [][]string
	for _, t := range all {
		row := []string{t.name}
		for _, at := range []struct {
			name string
			got  series
		}{{same, calm}, {"closed loop", got}} {
			cpu := values(at.got[t.name], perRequest)
			row = append(row, s.record("cpu_per_request", t.name, at.name, "µs", cpu).String(), "")
			if t.name != plain {
				row[len(row)-1] = s.record("cpu_to_two_hops", t.name, at.name, "ratio", paired(cpu, values(at.got[plain], perRequest), hops)).String()
			}
		}
		p50 := values(calm[t.name], quantile(.5))
		row = append(row, s.record("latency_p50", t.name, same, "µs", p50).String(), "")
		if t.name != plain {
			added := paired(p50, values(calm[plain], quantile(.5)), less)
			if t.name == "first route: stalled" {
				for i := range added {
					added[i] -= micros(stallFor)
				}
			}
			row[len(row)-1] = s.record("added_latency_p50", t.name, same, "µs", added).String()
		}
		rows = append(rows, row)
	}
	s.say(fmt.Sprintf("Every request's first attempt fails before output and a second, equal route answers; circuits are switched off, so that the first is asked every time. 503: the provider answers so. Refused: nothing listens. Stalled: connected, never a byte; the channel's first_byte clock is %v, and that is taken off the added latency. ÷ two hops: the processor time of such a request over twice that of a request with one good route, since its two attempts are two hops. That is taken at the same rate for all, %.0f requests a second, half of what the second of them can do (the aim is held against it), and in a closed loop of %d connections, which a route that waits cannot fill.", stallFor, rate, busy))
	s.table([]string{"", "cpu at the same rate, µs", "÷ two hops", "cpu in a closed loop, µs", "÷ two hops", "p50, µs", "added p50, µs"}, rows)
	return nil
}

// outage follows a closed loop while the first of two equal routes fails and comes back.
func (s *section) outage(ctx context.Context) error {
	set, err := s.r.setting("gateway")
	if err != nil {
		return err
	}
	set.first("sick", set.base+"/sick/v1", nil)
	set.file["breaker"] = object{"open_for": "1s", "max_open": "2s", "ramp": "1s"}
	t, err := set.begin()
	if err != nil {
		return err
	}
	defer s.closeAll(ctx, []*target{t})
	long := min(max(s.slot-3*time.Second, 6*time.Second), 24*time.Second)
	if err := s.warm(ctx, t, job{Connections: 16, Requests: of(post)(t)}); err != nil {
		return err
	}
	switched := make(chan error, 1)
	begin := time.Now()
	from, to := long/4, long*5/8
	go func() { // the load's own process takes some milliseconds to start: the line is that much off
		for _, at := range []struct {
			when time.Duration
			what string
		}{{from, "sick?on"}, {to, "sick?off"}} {
			select {
			case <-time.After(at.when - time.Since(begin)):
			case <-ctx.Done():
			}
			if err := s.r.tell(ctx, at.what); err != nil {
				switched <- err
				return
			}
		}
		switched <- nil
	}()
	const step = 250 * time.Millisecond
	m, err := s.shoot(ctx, t, job{Mode: closed, Connections: 16, Duration: long, Bucket: step, Requests: of(post)(t)})
	if failed := <-switched; err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	var rate, slowest line
	rate.name, slowest.name = "answers a second", "slowest answer, ms"
	var before, during, after []float64
	for i, b := range m.Line[:max(0, min(len(m.Line), int(long/step)))] {
		at := time.Duration(i) * step
		perSec := float64(b.Requests) / step.Seconds()
		rate.x, rate.y = append(rate.x, at.Seconds()), append(rate.y, perSec)
		slowest.x, slowest.y = append(slowest.x, at.Seconds()), append(slowest.y, float64(b.Slowest.Microseconds())/1000)
		switch {
		case at+step <= from:
			before = append(before, perSec)
		case at >= from && at+step <= to:
			during = append(during, perSec)
		case at >= to+2*time.Second:
			after = append(after, perSec)
		}
	}
	phases := [][]string{}
	for _, p := range []struct {
		name string
		v    []float64
	}{{"before", before}, {"during the outage", during}, {"after it (from 2 s on)", after}} {
		phases = append(phases, []string{p.name, s.record("throughput", "gateway", p.name, "1/s", p.v).String()})
	}
	s.record("during_to_before", "gateway", "medians", "ratio", []float64{divided(median(during), median(before))})
	s.say(fmt.Sprintf("Two equal routes, the first preferred; 16 connections in a closed loop. From %.1f s to %.1f s the first answers 503. Its circuit opens (after 5 failures in a row), and is tried again after 1 s, then 2 s (set so for this section; the defaults are 15 s and 2 min). Answers in steps of %v: median (range).", from.Seconds(), to.Seconds(), step))
	s.table([]string{"", "answers a second"}, phases)
	s.draw(&plot{name: "throughput", title: "answers a second", x: "s", zeroY: true, lines: []line{rate}, marks: []float64{from.Seconds(), to.Seconds()}})
	s.draw(&plot{name: "slowest", title: "slowest answer of each step, ms", x: "s", zeroY: true, lines: []line{slowest}, marks: []float64{from.Seconds(), to.Seconds()}})
	return nil
}
