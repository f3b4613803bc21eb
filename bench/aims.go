package main

import "slices"

// aim is what the project wants of a figure, and what it was in this run.
type aim struct {
	Name   string  `json:"name"`
	Bound  string  `json:"bound"`
	Figure string  `json:"figure"` // as shown: median (range of the rounds)
	Median float64 `json:"median"`
	Result string  `json:"result"` // met, missed, or not measured
}

const (
	met         = "met"
	missed      = "missed"
	notMeasured = "not measured"
)

// flat is what a cost per request may grow by and still be called flat: what two equal
// gateways differ by on a quiet machine, and a little.
const flat = 1.10

// against compares the run with the aims. A section that was left out, or is invalid, gives
// nothing.
func (r *report) against() []aim {
	list := []struct {
		name, section, what, target string
		at                          []string // the first that was measured
		most                        float64  // or at least, where least is set
		least                       bool
		bound                       string
	}{
		{name: "processor time of a whole answer, against nginx", section: "saturation", what: "cpu_per_request", target: "gateway/nginx", at: []string{post.name}, most: 1.5, bound: "≤ 1.5 ×"},
		{name: "throughput at saturation, against nginx", section: "saturation", what: "throughput", target: "gateway/nginx", at: []string{post.name}, most: 0.75, least: true, bound: "≥ 0.75 ×"},
		{name: "processor time of a stream of 20 events, against nginx", section: "saturation", what: "cpu_per_request", target: "gateway/nginx", at: []string{stream.name}, most: 1, bound: "≤ 1.0 ×"},
		{name: "the same, events 5 ms apart", section: "saturation", what: "cpu_per_request", target: "gateway/nginx", at: []string{paced.name}, most: 1, bound: "≤ 1.0 ×"},
		{name: "added p50 at half of saturation, µs", section: "latency", what: "added_latency_p50", target: "gateway-direct", at: halfOfSaturation, most: 60, bound: "≤ 60"},
		{name: "added p99 at half of saturation, µs", section: "latency", what: "added_latency_p99", target: "gateway-direct", at: halfOfSaturation, most: 600, bound: "≤ 600"},
		{name: "resident memory of each of 5,000 slow streams, KiB", section: "memory", what: "resident_per_stream", target: "gateway", at: []string{"5000 streams"}, most: 40, bound: "≤ 40"},
		{name: "first route answers 503: processor time over two hops'", section: "failover", what: "cpu_to_two_hops", target: "first route: 503", at: []string{"same rate"}, most: 1.3, bound: "≤ 1.3 ×"},
		{name: "first route refuses: the same", section: "failover", what: "cpu_to_two_hops", target: "first route: refused", at: []string{"same rate"}, most: 1.3, bound: "≤ 1.3 ×"},
		{name: "first route stalls: the same", section: "failover", what: "cpu_to_two_hops", target: "first route: stalled", at: []string{"same rate"}, most: 1.3, bound: "≤ 1.3 ×"},
		{name: "ready after exec, ms", section: "start", what: "ready", target: "gateway", at: []string{"as it comes"}, most: 300, bound: "≤ 300"},
		{name: "the same with a plugin, cache warm", section: "start", what: "ready", target: "gateway", at: []string{"with the anthropic plugin, cache warm"}, most: 300, bound: "≤ 300"},
		{name: "processor time with 10,000 channels and keys, against 10", section: "scale", what: "cpu_per_request", target: "10000/10", at: []string{"ten of them"}, most: flat, bound: "flat: ≤ 1.10 ×"},
	}
	var out []aim
	for _, l := range list {
		a := aim{Name: l.name, Bound: l.bound, Figure: "—", Result: notMeasured}
		for _, at := range l.at {
			m := r.find(l.section, l.what, l.target, at)
			if m == nil || a.Result != notMeasured {
				continue
			}
			a.Figure, a.Median, a.Result = m.String(), m.Median, missed
			if m.Median <= l.most != l.least || m.Median == l.most {
				a.Result = met
			}
		}
		out = append(out, a)
	}
	return out
}

// halfOfSaturation prefers the gateway's own: where a peer is slower, its rate would flatter.
var halfOfSaturation = []string{"post, 50 % of the gateway's saturation", "post, 50 % of saturation"}

func (r *report) invalid() (names []string) {
	for _, s := range r.Sections {
		if s.Invalid {
			names = append(names, s.Name)
		}
	}
	return names
}

// left is the sections that were not measured.
func (r *report) left() (names []string) {
	for _, name := range sectionNames() {
		if !slices.ContainsFunc(r.Sections, func(s *section) bool { return s.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}
