package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func newPluginBench() *cobra.Command {
	var asJSON bool
	var spend time.Duration
	var fixtures string
	c := &cobra.Command{
		Use:   "bench [DIR | FILE.wasm | builtin:NAME]",
		Short: "Measure what a plugin's calls cost, with its fixtures",
		Long: "Make the calls of each fixture over and over, on one instance in the gateway's own host, and show\n" +
			"what one takes: time, work in units and as a part of its budget, bytes in and out, memory. Events\n" +
			"are measured one and up to eight at a time.",
		Example: "  interlock plugin bench\n" +
			"  interlock plugin bench acme.wasm --time 1s --json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := moduleOrBuild(c.Context(), argOrHere(args), c.ErrOrStderr())
			if err != nil {
				return err
			}
			if fixtures == "" && m.fixtures != "" {
				fixtures = filepath.Join(m.fixtures, "testdata")
			}
			rows, err := bench(c.Context(), m, fixtures, spend)
			if err != nil {
				return err
			}
			if !asJSON {
				return printBench(c.OutOrStdout(), rows)
			}
			text, err := json.Marshal(map[string]any{"calls": rows})
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), text)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&spend, "time", 300*time.Millisecond, "how long to measure each line")
	c.Flags().StringVar(&fixtures, "fixtures", "", "the folder of the fixtures (default: testdata in DIR, or beside FILE.wasm)")
	return c
}

// benchRow is what one kind of call costs: an operation, or the events of a stream so many at a
// time. All numbers are means of a call.
type benchRow struct {
	Fixture   string  `json:"fixture"`
	Operation string  `json:"operation"`
	Together  int     `json:"together,omitempty"` // events in a call, at most
	Calls     int     `json:"calls"`
	Micros    float64 `json:"us_per_call"`
	PerEvent  float64 `json:"us_per_event,omitempty"`
	Units     int64   `json:"units"`
	Budget    int64   `json:"budget"`
	In        int     `json:"bytes_in"`
	Out       int     `json:"bytes_out"`
	Memory    int64   `json:"memory"` // bytes of the instance, the most
}

func bench(ctx context.Context, m *module, dir string, spend time.Duration) ([]benchRow, error) {
	g, err := newGuests(m, nil)
	if err != nil {
		return nil, err
	}
	defer g.close()
	set, err := readFixtures(dir, false, g.manifest.Kind)
	if err != nil {
		return nil, err
	}
	if len(set.parsed) == 0 {
		return nil, errors.New("there are no fixtures to measure with: a plugin's are in its folder testdata")
	}
	var rows []benchRow
	for i := range set.parsed {
		x := &set.parsed[i]
		p, err := g.load(x.Config())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		for _, together := range []int{1, 8} {
			steps, err := x.Steps(caller{p}, together)
			if err != nil {
				return nil, err
			}
			for len(steps) > 0 {
				n := 1
				for n < len(steps) && steps[n].Op == steps[0].Op {
					n++
				}
				if events := steps[0].Frames > 0; events || together == 1 {
					row, err := measure(ctx, p, steps[:n], spend)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", x.Name, err)
					}
					row.Fixture = x.Name
					if events {
						row.Together = together
					}
					rows = append(rows, row)
				}
				steps = steps[n:]
			}
		}
	}
	return rows, nil
}

// measure makes the calls, one after the other, for as long as asked and at least twice.
func measure(ctx context.Context, p *wasm.Plugin, steps []conformance.Step, spend time.Duration) (benchRow, error) {
	row := benchRow{Operation: steps[0].Name}
	frames, in, out := 0, 0, 0
	var took time.Duration
	var units, budget int64
	var dst []byte
	for round := 0; round < 2 || took < spend; round++ {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		if round == 1 { // the first one warmed up
			row.Calls, frames, in, out, took, units, budget = 0, 0, 0, 0, 0, 0, 0
		}
		for i := range steps {
			s := &steps[i]
			got, m, err := p.CallMeasured(wasm.Wait{}, wasm.Op(s.Op), s.In, dst[:0])
			var guest *wasm.GuestError
			if err != nil && !errors.As(err, &guest) {
				return row, withWords(err)
			}
			if err == nil {
				dst = got
			}
			row.Calls++
			frames, in, out = frames+s.Frames, in+len(s.In), out+len(got)
			took, units, budget = took+m.Took, units+m.Units, budget+m.Budget
			row.Memory = max(row.Memory, m.Memory)
		}
	}
	calls := int64(row.Calls)
	micros := float64(took.Nanoseconds()) / 1000
	row.Micros, row.Units, row.Budget = micros/float64(calls), units/calls, budget/calls
	row.In, row.Out = in/row.Calls, out/row.Calls
	if frames > 0 {
		row.PerEvent = micros / float64(frames)
	}
	return row, nil
}

func printBench(w io.Writer, rows []benchRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "FIXTURE\tOPERATION\tTOGETHER\tµs A CALL\tµs AN EVENT\tUNITS\tOF BUDGET\tBYTES IN\tOUT\tMEMORY\t")
	for _, r := range rows {
		together, event := "-", "-"
		if r.Together > 0 {
			together, event = fmt.Sprintf("up to %d", r.Together), fmt.Sprintf("%.1f", r.PerEvent)
			if r.Together == 1 {
				together = "1"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\t%s\t%d\t%.3f %%\t%d\t%d\t%s\t\n", printable(r.Fixture), r.Operation, together, r.Micros, event,
			r.Units, 100*float64(r.Units)/float64(max(1, r.Budget)), r.In, r.Out, bytesText(r.Memory))
	}
	return t.Flush()
}
