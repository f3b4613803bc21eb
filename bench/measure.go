package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// point is one measurement of one target.
type point struct {
	tally
	perRequest float64 // processor time, µs
}

// measure loads the target and divides its processor time by the requests. It waits a
// little before the second reading, so that work put off (the ledger's writer) is counted.
func (t *target) measure(ctx context.Context, connections int, k kind, long time.Duration) (point, error) {
	before, err := t.cpu()
	if err != nil {
		return point{}, err
	}
	sum, err := load(ctx, t.addr, connections, k, long)
	if err != nil {
		return point{}, fmt.Errorf("%s: %w", t.name, err)
	}
	time.Sleep(200 * time.Millisecond)
	after, err := t.cpu()
	if err != nil {
		return point{}, err
	}
	return point{tally: sum, perRequest: float64((after - before).Microseconds()) / float64(sum.Requests)}, nil
}

func measureAll(ctx context.Context, args []string, out io.Writer) error {
	p, err := parsePlan(args, out)
	if err != nil {
		return err
	}
	g, err := prepare(ctx, p.slowFor)
	if err != nil {
		return err
	}
	defer g.end()
	printMachine(out, g.nginx)
	if err := g.measureStarts(p, out); err != nil {
		return err
	}
	if err := g.measureLoads(ctx, p, out); err != nil {
		return err
	}
	if p.slow > 0 {
		if err := g.measureSlow(ctx, p, out); err != nil {
			return err
		}
	}
	if p.profile > 0 {
		return g.measureSplit(ctx, p, out)
	}
	return nil
}

func (g *ground) measureStarts(p plan, out io.Writer) error {
	var took []float64
	for range p.starts {
		t, err := g.beginGateway("")
		if err != nil {
			return err
		}
		took = append(took, float64(t.ready.Microseconds())/1000)
		t.end()
	}
	if len(took) > 0 {
		fmt.Fprintf(out, "\n## Start\n\nFrom exec to the first 200 on /readyz, empty ledger, %d starts: min %.0f ms, median %.0f ms.\n",
			len(took), slices.Min(took), median(took))
	}
	return nil
}

// measureLoads runs every round of every load on both targets, which both stay up; the one
// that is not measured is idle.
func (g *ground) measureLoads(ctx context.Context, p plan, out io.Writer) error {
	gateway, err := g.beginGateway("")
	if err != nil {
		return err
	}
	defer gateway.end()
	both := []*target{gateway}
	if g.nginx != "" {
		nginx, err := g.beginNginx()
		if err != nil {
			return err
		}
		defer nginx.end()
		both = append(both, nginx)
	}
	for _, k := range []kind{kindPost, kindStream} {
		t := &table{kind: k}
		for _, n := range p.connections {
			for _, t := range both { // connections made, pools filled
				if _, err := load(ctx, t.addr, n, k, 200*time.Millisecond); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
			r := row{connections: n, points: map[string][]point{}}
			for round := range p.rounds {
				order := slices.Clone(both)
				if round%2 == 1 {
					slices.Reverse(order)
				}
				for _, t := range order {
					m, err := t.measure(ctx, n, k, p.duration)
					if err != nil {
						return err
					}
					r.points[t.name] = append(r.points[t.name], m)
				}
			}
			t.rows = append(t.rows, r)
		}
		t.print(out)
	}
	return nil
}

// measureSlow holds many slow streams open on fresh targets and looks at their memory and
// processor time.
func (g *ground) measureSlow(ctx context.Context, p plan, out io.Writer) error {
	fmt.Fprintf(out, "\n## %d slow streams\n\n10 events a second each, for %v, each target fresh.\n\n| | resident before | most resident | cpu, %% of a core |\n| --- | --- | --- | --- |\n", p.slow, p.slowFor)
	begins := []func() (*target, error){func() (*target, error) { return g.beginGateway("") }}
	if g.nginx != "" {
		begins = append(begins, g.beginNginx)
	}
	for _, begin := range begins {
		t, err := begin()
		if err != nil {
			return err
		}
		idle, most, core, err := t.holdSlow(ctx, p.slow)
		t.end()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %.0f MiB | %.0f MiB | %.0f |\n", t.name, mib(idle), mib(most), 100*core)
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func (t *target) holdSlow(ctx context.Context, n int) (idle, most int64, core float64, err error) {
	idle = t.resident()
	before, err := t.cpu()
	if err != nil {
		return 0, 0, 0, err
	}
	type result struct {
		tally
		err error
	}
	ended := make(chan result, 1)
	go func() {
		sum, err := load(ctx, t.addr, n, kindSlow, 0)
		ended <- result{sum, err}
	}()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			most = max(most, t.resident())
		case r := <-ended:
			if r.err != nil {
				return 0, 0, 0, fmt.Errorf("%s: %w", t.name, r.err)
			}
			after, err := t.cpu()
			return idle, most, (after - before).Seconds() / r.Elapsed.Seconds(), err
		}
	}
}
