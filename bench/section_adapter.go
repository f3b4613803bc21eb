package main

import (
	"context"
	"fmt"
	"time"
)

// wasm asks one upstream through three adapters: OpenAI's own format, Anthropic's translated
// by the plugin's native build, and by its Wasm module.
func (s *section) wasm(ctx context.Context) error {
	if _, err := s.r.warmPlugins("anthropic"); err != nil {
		return err
	}
	const plain, native, wasm = "openai", "native:anthropic", "plugin:anthropic"
	var all []*target
	defer func() { s.closeAll(ctx, all) }()
	for _, ref := range []string{plain, native, wasm} {
		t, err := s.adapted(ref)
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	chat := kind{name: "chat", model: modelPlain, size: 4 << 10}
	small := kind{name: "image of 20 KiB", model: modelPlain, image: 20 << 10}
	big := kind{name: "image of 20 MiB", model: modelPlain, image: 20 << 20}
	loads := []struct {
		k     kind
		conns int
		each  float64 // events, to divide by
	}{{chat, 16, 0}, {eights, 32, eightEvents}, {stream, 16, streamEvents}, {small, 8, 0}, {big, 2, 0}}
	var rows [][]string
	for i, l := range loads {
		each := s.each((len(loads)-i)*len(all)*(s.rounds+1) + 6)
		got, err := s.run(ctx, all, job{Mode: closed, Connections: l.conns, Want: l.k.want, Duration: each}, of(l.k))
		if err != nil {
			return err
		}
		row := []string{l.k.name}
		figure, unit, what := perRequest, "µs", "cpu_per_request"
		row2 := []string{}
		for _, t := range all {
			row = append(row, s.record(what, t.name, l.k.name, unit, values(got[t.name], figure)).String())
		}
		for _, base := range []string{native, plain} {
			row = append(row, s.record("added_cpu", wasm+"-"+base, l.k.name, "µs", paired(values(got[wasm], figure), values(got[base], figure), less)).String())
		}
		rows = append(rows, row)
		if l.each > 0 {
			perEvent := func(m *sample) float64 { return m.perRequest() / l.each }
			row2 = append(row2, l.k.name+", per event")
			for _, t := range all {
				row2 = append(row2, s.record("cpu_per_event", t.name, l.k.name, "µs", values(got[t.name], perEvent)).String())
			}
			for _, base := range []string{native, plain} {
				row2 = append(row2, s.record("added_cpu_per_event", wasm+"-"+base, l.k.name, "µs", paired(values(got[wasm], perEvent), values(got[base], perEvent), less)).String())
			}
			rows = append(rows, row2)
		}
	}
	s.say(fmt.Sprintf("One upstream, three gateways: OpenAI's format as it is; Anthropic's Messages API by the adapter's native build; the same by its Wasm module, which is what users run. Processor time per request, µs, closed loops. chat: a body of 4 KiB. eights: %d events, eight written at a time, %v apart. Images stand in the prompt in base64.", eightEvents, paceEvents))
	s.table([]string{"", plain, native, wasm, "Wasm − native", "Wasm − openai"}, rows)
	return s.wasmStreams(ctx, native, wasm)
}

// adapted starts a gateway with that adapter.
func (s *section) adapted(ref string) (*target, error) {
	set, err := s.r.setting(ref)
	if err != nil {
		return nil, err
	}
	if ref != "openai" {
		if err := set.adapter(s.r.ground, ref); err != nil {
			return nil, err
		}
	}
	return set.begin()
}

// wasmStreams holds a thousand slow streams through each adapter, on fresh gateways.
func (s *section) wasmStreams(ctx context.Context, refs ...string) error {
	n := quick(s, 200, 1000)
	var rows [][]string
	for _, ref := range refs {
		t, err := s.adapted(ref)
		if err != nil {
			return err
		}
		row, err := s.holdOpen(ctx, t, n, fmt.Sprintf("%d streams", n), 4*time.Second)
		s.closeAll(ctx, []*target{t})
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	s.say("Slow streams held open, each gateway fresh:")
	s.table([]string{"", "streams", "before, MiB", "most, MiB", "per stream, KiB", "cpu, % of a core"}, rows)
	return nil
}
