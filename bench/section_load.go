package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// busy is the connections of the load at which throughput is called saturation.
const busy = 64

// pairs records a figure of every target, and its ratios to nginx round by round, and returns
// a row of it: each target's median and range, then the ratios of the gateway.
func (s *section) pairs(what, unit, at string, all []*target, got series, figure func(*sample) float64) {
	for _, t := range all {
		s.record(what, t.name, at, unit, values(got[t.name], figure))
	}
	for _, t := range all {
		if t.name != "nginx" && t.name != "direct" && len(got["nginx"]) > 0 {
			s.record(what, t.name+"/nginx", at, "ratio", paired(values(got[t.name], figure), values(got["nginx"], figure), divided))
		}
	}
}

// cell is what a table shows of a measure: the median, and the range.
func (s *section) cell(what, target, at string) string {
	for i := range s.Measures {
		if m := &s.Measures[i]; m.What == what && m.Target == target && m.At == at {
			return m.String()
		}
	}
	return "—"
}

func (m *measure) String() string {
	switch {
	case len(m.Rounds) == 0:
		return "—"
	case len(m.Rounds) == 1:
		return number(m.Median)
	default:
		return fmt.Sprintf("%s (%s–%s)", number(m.Median), number(m.Min), number(m.Max))
	}
}

// number has three digits or so.
func number(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func names(all []*target) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t.name
	}
	return out
}

// head is a table's head: a first column, then one for each target, then the ratios.
func head(first string, all []*target, ratios bool) []string {
	out := append([]string{first}, names(all)...)
	if ratios {
		for _, t := range all {
			if t.name != "nginx" && t.name != "direct" && slices.Contains(names(all), "nginx") {
				out = append(out, t.name+" ÷ nginx")
			}
		}
	}
	return out
}

// line is a table's row under head.
func (s *section) line(first, what, at string, all []*target, ratios bool) []string {
	out := []string{first}
	for _, t := range all {
		out = append(out, s.cell(what, t.name, at))
	}
	if ratios {
		for _, t := range all {
			if t.name != "nginx" && t.name != "direct" && slices.Contains(names(all), "nginx") {
				out = append(out, s.cell(what, t.name+"/nginx", at))
			}
		}
	}
	return out
}

// saturate runs closed loads of 64 connections: throughput, processor time, time to the first
// event. The processor time of an event is the difference between a paced stream's and a whole
// answer's, over its events.
func (s *section) saturate(ctx context.Context) error {
	all, err := s.targets(true)
	defer s.closeAll(ctx, all)
	if err != nil {
		return err
	}
	kinds := []kind{post, stream, paced}
	var rows, cpu [][]string
	for i, k := range kinds {
		some := taking(all, k)
		each := s.each((len(kinds) - i) * len(all) * (s.rounds + 1))
		got, err := s.run(ctx, some, job{Mode: closed, Connections: busy, Want: k.want, Duration: each}, of(k))
		if err != nil {
			return err
		}
		s.keep(k, got)
		s.pairs("throughput", "1/s", k.name, some, got, perSecond)
		s.pairs("cpu_per_request", "µs", k.name, some, got, perRequest)
		rows = append(rows, s.line(k.name, "throughput", k.name, all, true))
		cpu = append(cpu, s.line(k.name, "cpu_per_request", k.name, all, true))
		if k.name == paced.name {
			for _, t := range some {
				if m := s.measured("cpu_per_request", t.name, post.name); m != nil {
					s.record("cpu_per_event", t.name, k.name, "µs", paired(values(got[t.name], perRequest), m.Rounds, func(a, b float64) float64 { return (a - b) / streamEvents }))
				}
			}
			cpu = append(cpu, s.line("an event of paced", "cpu_per_event", k.name, all, false))
		}
	}
	s.say(fmt.Sprintf("%d connections, each with its next request as soon as it has its answer. post: 0.3 KB in, 0.4 KB out. stream: %d events written without a pause. paced: %d events, %v apart (so throughput is bounded by the pace: %d connections can have %.0f a second).",
		busy, streamEvents, streamEvents, paceEvents, busy, busy/((streamEvents+1)*paceEvents.Seconds())))
	s.say("Answers per second:")
	s.table(head("load", all, true), rows)
	s.say("Processor time per request, µs (user + system; nginx with its workers). direct is the upstream's own, in every row of the others too.")
	s.table(head("load", all, true), cpu)
	s.draw(bars("cpu", "processor time per request, µs", kindNames(kinds), all, func(t *target, k string) float64 {
		if m := s.measured("cpu_per_request", t.name, k); m != nil {
			return m.Median
		}
		return 0
	}))
	return nil
}

func kindNames(kinds []kind) []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

// measured is a measure of this section, nil where there is none.
func (s *section) measured(what, target, at string) *measure {
	for i := range s.Measures {
		if m := &s.Measures[i]; m.What == what && m.Target == target && m.At == at && len(m.Rounds) > 0 {
			return m
		}
	}
	return nil
}

// keep remembers what the targets can do.
func (s *section) keep(k kind, got series) {
	by := map[string]float64{}
	for name, list := range got {
		by[name] = median(values(list, perSecond))
	}
	s.r.saturation[k.name] = by
}

// slowest is the least that a target can do of a kind, measured now if it was not before.
func (s *section) slowest(ctx context.Context, all []*target, k kind) (target string, perSec float64, err error) {
	if s.r.saturation[k.name] == nil {
		got := series{}
		for _, t := range taking(all, k) {
			m, err := s.shoot(ctx, t, job{Mode: closed, Connections: busy, Want: k.want, Duration: 500 * time.Millisecond, Requests: of(k)(t)})
			if err != nil {
				return "", 0, err
			}
			got[t.name] = []*sample{m}
		}
		s.keep(k, got)
	}
	for name, v := range s.r.saturation[k.name] {
		if perSec == 0 || v < perSec {
			target, perSec = name, v
		}
	}
	if perSec <= 0 {
		return "", 0, fmt.Errorf("no target answers %s", k.name)
	}
	return target, perSec, nil
}

// connections repeats the closed loads over numbers of connections.
func (s *section) connections(ctx context.Context) error {
	all, err := s.targets(false)
	defer s.closeAll(ctx, all)
	if err != nil {
		return err
	}
	counts := quick(s, []int{1, 64, 512}, []int{1, 8, 64, 512})
	kinds := []kind{post, stream}
	left := len(counts) * len(kinds) * len(all) * s.rounds
	for _, k := range kinds {
		some := taking(all, k)
		var rows, speed [][]string
		for _, n := range counts {
			at := fmt.Sprintf("%s, %d connections", k.name, n)
			got, err := s.run(ctx, some, job{Mode: closed, Connections: n, Want: k.want, Duration: s.each(left)}, of(k))
			if err != nil {
				return err
			}
			left -= len(all) * s.rounds
			s.pairs("cpu_per_request", "µs", at, some, got, perRequest)
			s.pairs("throughput", "1/s", at, some, got, perSecond)
			for _, q := range []float64{.5, .99} {
				s.pairs(fmt.Sprintf("latency_p%g", q*100), "µs", at, some, got, quantile(q))
			}
			rows = append(rows, s.line(fmt.Sprint(n), "cpu_per_request", at, all, true))
			speed = append(speed, append(s.line(fmt.Sprint(n), "throughput", at, all, false), s.line("", "latency_p50", at, all, false)[1:]...))
		}
		s.say("**" + k.name + "**: processor time per request, µs")
		s.table(head("connections", all, true), rows)
		s.say("**" + k.name + "**: answers per second, then the latency of the closed loop (p50, µs)")
		s.table(append(head("connections", all, false), names(all)...), speed)
		xs := make([]float64, len(counts))
		for i, n := range counts {
			xs[i] = float64(n)
		}
		p := &plot{name: k.name, title: "processor time per " + k.name + ", µs", x: "connections", logX: true, zeroY: true}
		for _, t := range some {
			var ys []float64
			for _, n := range counts {
				if m := s.measured("cpu_per_request", t.name, fmt.Sprintf("%s, %d connections", k.name, n)); m != nil {
					ys = append(ys, m.Median)
				}
			}
			p.lines = append(p.lines, line{t.name, xs[:len(ys)], ys})
		}
		s.draw(p)
	}
	return nil
}
