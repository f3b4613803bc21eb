package main

import (
	"context"
	"fmt"
	"time"
)

// quantiles are those that latency is told by.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", .5}, {"p99", .99}, {"p999", .999}}

// latency asks every target at the same constant rates and takes what the upstream itself
// needs, and what nginx needs, from what they need, quantile by quantile and round by round.
func (s *section) latency(ctx context.Context) error {
	all, err := s.targets(true)
	defer s.closeAll(ctx, all)
	if err != nil {
		return err
	}
	s.say("An open loop: requests arrive at a constant rate, the same for all targets, and latency counts from the moment at which a request was to be sent. Added: a target's quantile less that of the upstream asked directly (or of nginx) in the same round, µs.")
	type condition struct {
		k    kind
		rate float64
		at   string
	}
	var list []condition
	for _, k := range []kind{post, stream} {
		who, most, err := s.slowest(ctx, all, k)
		if err != nil {
			return err
		}
		for _, share := range quick(s, []float64{.5}, []float64{.25, .5}) {
			list = append(list, condition{k, share * most, fmt.Sprintf("%s, %.0f %% of saturation", k.name, 100*share)})
		}
		if own := s.r.saturation[k.name]["gateway"]; who != "gateway" {
			list = append(list, condition{k, own / 2, k.name + ", 50 % of the gateway's saturation"})
		}
		s.say(fmt.Sprintf("Saturation of %s is the slowest target's: %s, %.0f a second.", k.name, who, most))
	}
	for i, c := range list {
		each := s.each((len(list) - i) * len(all) * s.rounds)
		if err := s.atRate(ctx, taking(all, c.k), c.k, c.rate, c.at, each); err != nil {
			return err
		}
	}
	return nil
}

func (s *section) atRate(ctx context.Context, all []*target, k kind, rate float64, at string, each time.Duration) error {
	got, err := s.run(ctx, all, job{Mode: opened, Connections: busy, Want: k.want, Rate: rate, Duration: each}, of(k))
	if err != nil {
		return err
	}
	what := []string{"latency"}
	if k.stream {
		what = append(what, "first_event")
	}
	for _, w := range what {
		var rows [][]string
		for _, t := range all {
			row := []string{t.name}
			for _, q := range quantiles {
				figure := quantile(q.q)
				if w == "first_event" {
					figure = firstQuantile(q.q)
				}
				own := values(got[t.name], figure)
				m := s.record(w+"_"+q.name, t.name, at, "µs", own)
				m.Mixed = micros(together(got[t.name], w).at(q.q))
				row = append(row, m.String())
				for _, from := range []string{"direct", "nginx"} {
					if t.name == from || len(got[from]) == 0 || t.name == "direct" {
						row = append(row, "")
						continue
					}
					row = append(row, s.record("added_"+w+"_"+q.name, t.name+"-"+from, at, "µs", paired(own, values(got[from], figure), less)).String())
				}
			}
			rows = append(rows, row)
		}
		words := map[string]string{"latency": "to the end of the answer", "first_event": "to the first event"}
		s.say(fmt.Sprintf("**%s** (%.0f a second), %s, µs", at, rate, words[w]))
		s.table([]string{"", "p50", "to direct", "to nginx", "p99", "to direct", "to nginx", "p99.9", "to direct", "to nginx"}, rows)
	}
	p := &plot{name: slug(at), title: "latency, " + at, x: "quantile: 1 in", y: "µs", logX: true, logY: true}
	for _, t := range all {
		h := together(got[t.name], "latency")
		l := line{name: t.name}
		for _, one := range []float64{1.1, 2, 4, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000} {
			if h.Histogram != nil && float64(h.TotalCount()) >= one {
				l.x, l.y = append(l.x, one), append(l.y, micros(h.at(1-1/one)))
			}
		}
		p.lines = append(p.lines, l)
	}
	s.draw(p)
	return nil
}

// together is the histogram of all rounds.
func together(list []*sample, what string) histogram {
	h := newHistogram()
	for _, m := range list {
		if what == "first_event" {
			h.merge(m.First)
		} else {
			h.merge(m.Latency)
		}
	}
	return h
}

func slug(s string) string {
	var b []rune
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	return string(b)
}
