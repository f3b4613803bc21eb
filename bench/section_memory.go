package main

import (
	"context"
	"fmt"
	"time"
)

// start measures from exec to the first 200 on readiness, with an empty ledger.
func (s *section) start(ctx context.Context) error {
	n := quick(s, 3, 11)
	var rows [][]string
	times := func(name, what string, begin func() (*target, error)) error {
		var ready, idle []float64
		for range n {
			t, err := begin()
			if err != nil {
				return err
			}
			ready = append(ready, float64(t.ready.Microseconds())/1000)
			if err := pass(ctx, 300*time.Millisecond); err != nil {
				return err
			}
			idle = append(idle, mib(t.resident()))
			t.end()
		}
		a := s.record("ready", name, what, "ms", ready)
		row := []string{name + ", " + what, a.String()}
		rows = append(rows, append(row, s.record("resident_idle", name, what, "MiB", idle).String()))
		return nil
	}
	if err := times("gateway", "as it comes", func() (*target, error) { return s.r.beginGateway("gateway") }); err != nil {
		return err
	}
	withPlugin := func() (*target, error) {
		set, err := s.r.setting("gateway")
		if err != nil {
			return nil, err
		}
		if err := set.adapter(s.r.ground, "plugin:anthropic"); err != nil {
			return nil, err
		}
		return set.begin()
	}
	cold, err := s.r.warmPlugins("anthropic")
	if err != nil {
		return err
	}
	if err := times("gateway", "with the anthropic plugin, cache warm", withPlugin); err != nil {
		return err
	}
	m := s.record("ready", "gateway", "with the anthropic plugin, cache cold", "ms", []float64{float64(cold.Microseconds()) / 1000})
	rows = append(rows, []string{"gateway, with the anthropic plugin, cache cold", m.String(), ""})
	if s.r.nginx != "" {
		if err := times("nginx", "as it comes", s.r.beginNginx); err != nil {
			return err
		}
	}
	t, err := s.r.beginGateway("gateway")
	if err != nil {
		return err
	}
	defer t.end()
	if err := pass(ctx, time.Second); err != nil {
		return err
	}
	before, err := t.cpu()
	if err != nil {
		return err
	}
	const long = 2 * time.Second
	if err := pass(ctx, long); err != nil {
		return err
	}
	after, err := t.cpu()
	if err != nil {
		return err
	}
	idle := s.record("core_idle", "gateway", "as it comes", "%", []float64{100 * (after - before).Seconds() / long.Seconds()})
	s.say(fmt.Sprintf("A gateway that nobody asks takes %s %% of a core.", idle))
	s.say(fmt.Sprintf("From exec to the first 200 on readiness, empty ledger, files in the page cache; %d starts (the cold one: 1). Resident 0.3 s later, with children.", n))
	s.table([]string{"", "ready, ms", "resident, MiB"}, rows)
	return nil
}

// warmPlugins starts a gateway with the plugin once, so that its compiled form is kept, and
// returns how long that start took; 0 if it was done before.
func (g *ground) warmPlugins(name string) (time.Duration, error) {
	if g.plugins != "" {
		return 0, nil
	}
	set, err := g.setting("gateway")
	if err != nil {
		return 0, err
	}
	if err := set.adapter(g, "plugin:"+name); err != nil {
		return 0, err
	}
	t, err := set.begin()
	if err != nil {
		return 0, err
	}
	t.end()
	g.plugins = set.file["data_dir"].(string)
	return t.ready, nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// memory holds slow streams open on fresh targets.
func (s *section) memory(ctx context.Context) error {
	counts := quick(s, []int{200, 1000}, []int{1000, 5000})
	s.say(fmt.Sprintf("Streams held open, an event every %v, on fresh targets: resident memory (with children; shared pages count in each) before, and the most of it once all streams are open. Per stream: the difference over the streams. The gateway's is what its heap grew to, garbage included.", paceSlow))
	begins := []func() (*target, error){func() (*target, error) { return s.r.beginGateway("gateway") }}
	if s.r.nginx != "" {
		begins = append(begins, s.r.beginNginx)
	}
	for _, p := range s.r.peers {
		if p.process != nil && p.takes(slow) {
			begins = append(begins, func() (*target, error) { return p, nil })
		}
	}
	var rows [][]string
	for _, n := range counts {
		for _, begin := range begins {
			t, err := begin()
			if err != nil {
				return err
			}
			row, err := s.holdOpen(ctx, t, n, fmt.Sprintf("%d streams", n), s.each(len(counts)*len(begins)))
			s.closeAll(ctx, []*target{t})
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	s.table([]string{"", "streams", "before, MiB", "most, MiB", "per stream, KiB", "cpu, % of a core"}, rows)
	return nil
}

// holdOpen opens n slow streams on the target, looks at it for a while once they are all
// open, and lets them end.
func (s *section) holdOpen(ctx context.Context, t *target, n int, at string, long time.Duration) ([]string, error) {
	if err := pass(ctx, 300*time.Millisecond); err != nil {
		return nil, err
	}
	idle := t.resident()
	var most int64
	var core float64
	var failed error
	j := job{Mode: hold, Addr: t.addr, Requests: of(slow)(t), Want: slow.want, Connections: n, Duration: long}
	sum, err := j.do(ctx, func() {
		before, err := t.cpu()
		begin := time.Now()
		for time.Since(begin) < max(long/2, 2*paceSlow) {
			if failed = pass(ctx, 50*time.Millisecond); failed != nil {
				return
			}
			most = max(most, t.resident())
		}
		after, err2 := t.cpu()
		core = (after - before).Seconds() / time.Since(begin).Seconds()
		if failed = err; failed == nil {
			failed = err2
		}
		if err := s.r.tell(ctx, "finish"); failed == nil {
			failed = err
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	s.count(t, sum)
	if sum.Requests != n {
		return nil, fmt.Errorf("%s: %d streams of %d ended well", t.name, sum.Requests, n)
	}
	before := s.record("resident_before", t.name, at, "MiB", []float64{mib(idle)})
	top := s.record("resident", t.name, at, "MiB", []float64{mib(most)})
	per := s.record("resident_per_stream", t.name, at, "KiB", []float64{float64(most-idle) / 1024 / float64(n)})
	busy := s.record("core", t.name, at, "%", []float64{100 * core})
	return []string{t.name, fmt.Sprint(n), number(before.Median), number(top.Median), number(per.Median), number(busy.Median)}, nil
}
