package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// trial is a run in progress.
type trial struct {
	*ground
	plan  *plan
	peers []*target
	out   io.Writer
	// saturation is the requests a second that a target's closed load of 64 connections came
	// to, by kind and target: what rates are chosen by.
	saturation map[string]map[string]float64
}

// chapter is one section of the report: its share of the run's time, and how it is measured.
type chapter struct {
	name, title string
	weight      float64
	measure     func(s *section, ctx context.Context) error
}

// chapters are the sections in their order.
var chapters = []chapter{
	{"start", "Start-up", 1, (*section).start},
	{"saturation", "Saturation", 3, (*section).saturate},
	{"latency", "Added latency at fixed rates", 5, (*section).latency},
	{"connections", "Growth over connections", 4, (*section).connections},
	{"memory", "Memory under slow streams", 3, (*section).memory},
	{"failover", "A first route that fails", 3, (*section).failover},
	{"outage", "Through an outage", 1.5, (*section).outage},
	{"features", "What features cost", 3, (*section).features},
	{"bodies", "Bodies", 3, (*section).bodies},
	{"scale", "Channels and keys", 3, (*section).scale},
	{"wasm", "The Wasm adapter", 4, (*section).wasm},
	{"profile", "Where the gateway's time goes", 2, (*section).profile},
}

func sectionNames() []string {
	names := make([]string, len(chapters))
	for i, c := range chapters {
		names[i] = c.name
	}
	return names
}

// measureAll is the benchmark.
func measureAll(ctx context.Context, args []string, out io.Writer) error {
	p, err := parsePlan(args, out)
	if err != nil {
		return err
	}
	file, peers, err := readPeers(p.peers)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.into, 0o755); err != nil {
		return err
	}
	if p.into, err = filepath.Abs(p.into); err != nil {
		return err
	}
	at := file.Upstream
	if at == "" {
		at = "127.0.0.1:0"
	}
	if p.gateway == "" {
		fmt.Fprintln(out, "building the gateway")
	}
	g, err := prepare(ctx, at, p.gateway)
	if err != nil {
		return err
	}
	defer g.end()
	begin := time.Now()
	r := &trial{ground: g, plan: p, peers: peers, out: out, saturation: map[string]map[string]float64{}}
	rep := &report{
		SchemaVersion: schemaVersion, At: begin.UTC().Truncate(time.Second), Commit: commit(ctx), Plan: p,
		Machine: thisMachine(r.nginxVersion(ctx)), Targets: r.targetNames(),
	}
	if g.nginx == "" {
		fmt.Fprintln(out, "NGINX IS MISSING (apt-get install nginx-light): there is nothing to compare with")
	}
	var last error
	for i, c := range chapters {
		if !slices.Contains(p.Sections, c.name) || ctx.Err() != nil {
			continue
		}
		s := r.begin(c, p.Budget-time.Since(begin), i)
		if err := c.measure(s, ctx); err != nil {
			s.Errors++
			s.Examples = append(s.Examples, fmt.Sprintf("%.600s", err))
			last = err
		}
		r.conclude(s)
		rep.Sections = append(rep.Sections, s)
	}
	rep.Took = seconds(time.Since(begin).Seconds())
	rep.Machine.LoadEnd = loadAverage()
	rep.Books = g.books
	rep.Aims = rep.against()
	if err := rep.write(p.into); err != nil {
		return err
	}
	rep.printSummary(out)
	fmt.Fprintln(out, "the report:", filepath.Join(p.into, "report.md"))
	if last != nil {
		return fmt.Errorf("a section could not be finished: %w", last)
	}
	return ctx.Err()
}

// begin gives a section its share of the time that is left.
func (r *trial) begin(c chapter, left time.Duration, i int) *section {
	var all float64
	for _, other := range chapters[i:] {
		if slices.Contains(r.plan.Sections, other.name) {
			all += other.weight
		}
	}
	s := &section{Name: c.name, Title: c.title, rounds: r.plan.Rounds, begun: time.Now(), r: r}
	s.slot = max(time.Duration(c.weight/all*float64(left)), 2*time.Second)
	fmt.Fprintf(r.out, "%-12s about %v\n", c.name, s.slot.Round(time.Second))
	return s
}

func (r *trial) conclude(s *section) {
	s.Took = seconds(time.Since(s.begun).Seconds())
	s.Invalid = s.Errors > 0
	fmt.Fprintf(r.out, "%-12s took %.0f s, %d requests, %d errors\n", "", s.Took, s.Requests, s.Errors)
	for _, e := range s.Examples {
		fmt.Fprintln(r.out, "   ", e)
	}
}

// each is how long one shot may take if this section has so many still to make.
func (s *section) each(shots int) time.Duration {
	left := s.slot - time.Since(s.begun)
	const overhead = settle + 40*time.Millisecond // a load's start, readings
	return min(max(left/time.Duration(max(shots, 1))-overhead, 200*time.Millisecond), 5*time.Second)
}

// quick picks by the plan.
func quick[T any](s *section, quick, full T) T {
	if s.r.plan.Quick {
		return quick
	}
	return full
}

// targets starts a gateway and nginx, and adds the peers. The upstream itself comes first if
// direct is set. closeAll ends them.
func (s *section) targets(direct bool) ([]*target, error) {
	var all []*target
	if direct {
		all = append(all, s.r.direct())
	}
	if s.r.nginx != "" {
		t, err := s.r.beginNginx()
		if err != nil {
			return all, err
		}
		all = append(all, t)
	}
	t, err := s.r.beginGateway("gateway")
	if err != nil {
		return all, err
	}
	return append(append(all, t), s.r.peers...), nil
}

func (s *section) closeAll(ctx context.Context, all []*target) {
	for _, t := range all {
		if err := s.r.close(ctx, t); err != nil {
			s.Errors++
			s.Examples = append(s.Examples, fmt.Sprintf("%.300s", err))
		}
	}
}

// taking is the targets that take part in a load.
func taking(all []*target, k kind) (some []*target) {
	for _, t := range all {
		if t.takes(k) {
			some = append(some, t)
		}
	}
	return some
}

func (r *trial) targetNames() []string {
	names := []string{"direct", "gateway"}
	if r.nginx != "" {
		names = append(names, "nginx")
	}
	for _, p := range r.peers {
		names = append(names, p.name)
	}
	return names
}

func (r *trial) nginxVersion(ctx context.Context) string {
	if r.nginx == "" {
		return ""
	}
	b, _ := exec.CommandContext(ctx, r.nginx, "-v").CombinedOutput()
	_, v, _ := strings.Cut(strings.TrimSpace(string(b)), "nginx/")
	return v
}

func commit(ctx context.Context) string {
	b, _ := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	return strings.TrimSpace(string(b))
}
