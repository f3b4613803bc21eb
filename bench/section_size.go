package main

import (
	"context"
	"fmt"
	"time"
)

// bodies repeats a closed load over sizes of requests and of answers.
func (s *section) bodies(ctx context.Context) error {
	all, err := s.targets(false)
	defer s.closeAll(ctx, all)
	if err != nil {
		return err
	}
	all = taking(all, post)
	sizes := quick(s, []int{1 << 10, 256 << 10, 10 << 20}, []int{1 << 10, 16 << 10, 256 << 10, 1 << 20, 10 << 20})
	s.say("8 connections in a closed loop (10 MiB: 2). Requests: a prompt of that size, a small answer; answers the other way round. Processor time per request, µs; throughput in MiB of bodies a second. nginx passes requests on as they come; the gateway reads the whole body first, since it must be able to send it again.")
	left := 2 * len(sizes) * len(all) * (s.rounds + 1)
	for _, way := range []struct {
		name string
		kind func(int) kind
	}{{"requests", sizedIn}, {"answers", sizedOut}} {
		var rows, speed [][]string
		p := &plot{name: way.name, title: "processor time per request, µs, by the size of " + way.name, x: "KiB", logX: true, logY: true}
		lines := map[string]*line{}
		for _, size := range sizes {
			k := way.kind(size)
			at := way.name + " of " + bytesText(size)
			n := 8
			if size > 4<<20 {
				n = 2
			}
			got, err := s.run(ctx, all, job{Mode: closed, Connections: n, Want: k.want, Duration: s.each(left)}, of(k))
			if err != nil {
				return err
			}
			left -= len(all) * (s.rounds + 1)
			s.pairs("cpu_per_request", "µs", at, all, got, perRequest)
			s.pairs("volume", "MiB/s", at, all, got, func(m *sample) float64 { return m.perSecond() * float64(size) / (1 << 20) })
			rows = append(rows, s.line(bytesText(size), "cpu_per_request", at, all, true))
			speed = append(speed, s.line(bytesText(size), "volume", at, all, false))
			for _, t := range all {
				if lines[t.name] == nil {
					lines[t.name] = &line{name: t.name}
				}
				l := lines[t.name]
				l.x, l.y = append(l.x, float64(size)/1024), append(l.y, s.measured("cpu_per_request", t.name, at).Median)
			}
		}
		s.say("**" + way.name + "**: processor time")
		s.table(head("size", all, true), rows)
		s.say("**" + way.name + "**: MiB a second")
		s.table(head("size", all, false), speed)
		for _, t := range all {
			p.lines = append(p.lines, *lines[t.name])
		}
		s.draw(p)
	}
	return nil
}

func bytesText(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// scale compares gateways whose files have ten to ten thousand channels and as many keys.
func (s *section) scale(ctx context.Context) error {
	counts := quick(s, []int{10, 1000}, []int{10, 100, 1000, 10000})
	var all []*target
	defer func() { s.closeAll(ctx, all) }()
	few, many := map[string][][]byte{}, map[string][][]byte{}
	idle := map[string]float64{}
	for _, n := range counts {
		set, err := s.r.setting(fmt.Sprint(n))
		if err != nil {
			return err
		}
		set.spread(n)
		t, err := set.begin()
		if err != nil { // the smaller ones have been started, and are measured
			s.Errors++
			s.Examples = append(s.Examples, fmt.Sprintf("%d channels and keys: %.300s", n, err))
			break
		}
		all = append(all, t)
		if err := pass(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		idle[t.name] = mib(t.resident())
		for i := range n {
			k := post
			k.key, k.model = scaleKey(i), scaleModel(i)
			r := t.request(k)
			many[t.name] = append(many[t.name], r)
			if i%(n/10) == 0 {
				few[t.name] = append(few[t.name], r)
			}
		}
	}
	type traffic struct {
		name string
		of   map[string][][]byte
	}
	each := s.each(2 * len(all) * s.rounds)
	for _, tr := range []traffic{{"ten of them", few}, {"all of them", many}} {
		got := series{}
		for _, t := range all {
			// Every channel's connection is made, every key has been seen.
			j := job{Mode: opened, Rate: 2000, Connections: 16, Requests: tr.of[t.name]}
			j.Duration = time.Duration(float64(len(j.Requests))/j.Rate*float64(time.Second)) + 50*time.Millisecond
			if _, err := s.shoot(ctx, t, j); err != nil {
				return err
			}
		}
		err := alternate(s.rounds, all, func(t *target) error {
			m, err := s.shoot(ctx, t, job{Mode: closed, Connections: 16, Duration: each, Requests: tr.of[t.name]})
			got[t.name] = append(got[t.name], m)
			return err
		})
		if err != nil {
			return err
		}
		first := values(got[all[0].name], perRequest)
		for _, t := range all {
			cpu := values(got[t.name], perRequest)
			s.record("cpu_per_request", t.name, tr.name, "µs", cpu)
			s.record("cpu_per_request", t.name+"/"+all[0].name, tr.name, "ratio", paired(cpu, first, divided))
		}
	}
	var rows [][]string
	p := &plot{name: "cpu", title: "processor time per request, µs", x: "channels and keys", logX: true, zeroY: true, lines: []line{{name: "ten of them"}, {name: "all of them"}}}
	for i, t := range all {
		ready := s.record("ready", t.name, "start", "ms", []float64{float64(t.ready.Microseconds()) / 1000}).String()
		rss := s.record("resident_idle", t.name, "start", "MiB", []float64{idle[t.name]}).String()
		rows = append(rows, []string{
			t.name, ready, rss,
			s.cell("cpu_per_request", t.name, "ten of them"), s.cell("cpu_per_request", t.name+"/"+all[0].name, "ten of them"),
			s.cell("cpu_per_request", t.name, "all of them"), s.cell("cpu_per_request", t.name+"/"+all[0].name, "all of them"),
		})
		for j, tr := range []string{"ten of them", "all of them"} {
			p.lines[j].x = append(p.lines[j].x, float64(counts[i]))
			p.lines[j].y = append(p.lines[j].y, s.measured("cpu_per_request", t.name, tr).Median)
		}
	}
	s.say("Groups of ten channels, each group with a model of its own, and a key for each channel. Ten of them: the same ten keys' worth of traffic whatever stands beside them in the file, so that only looking things up can differ. All of them: traffic goes over every key and group in turn, so that every channel has its own connection and counters, and at 10,000 more decisions are needed than are remembered. ÷: to the smallest, round by round.")
	s.table([]string{"channels and keys", "ready, ms", "resident, MiB", "ten of them: cpu, µs", "÷", "all of them: cpu, µs", "÷"}, rows)
	s.draw(p)
	return nil
}

func scaleKey(i int) string   { return fmt.Sprintf("ilk-bench-%010d", i) }
func scaleModel(i int) string { return fmt.Sprintf("bench-%d", i/10) }

// spread gives the setting n channels in groups of ten, and n keys.
func (s *setting) spread(n int) {
	var groups, keys list
	for i := range n {
		group := fmt.Sprintf("group-%d", i/10)
		if i%10 == 0 {
			groups = append(groups, object{"name": group, "channels": list{}})
		}
		c := channel(fmt.Sprintf("channel-%d", i), "upstream")
		c["models"] = object{scaleModel(i): object{}}
		last := groups[len(groups)-1].(object)
		last["channels"] = append(last["channels"].(list), c)
		keys = append(keys, object{"name": fmt.Sprintf("key-%d", i), "key": scaleKey(i), "groups": list{group}})
	}
	s.file["groups"], s.file["keys"] = groups, keys
}
