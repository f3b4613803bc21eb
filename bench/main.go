// Command bench measures what it costs that the gateway stands between a caller and a
// provider, beside nginx in front of the same upstream on the same machine, and beside other
// gateways that bench/peers.yaml names. README.md says how to read its report.
//
// It is a program to run and read, not a test: it asserts nothing of time. It does check
// itself: every answer is verified, a section with errors is marked invalid, and in the end
// every gateway's ledger is compared with the calls that the upstream counted. Upstream, load,
// gateway and nginx are processes of their own, so that each one's processor time can be told
// apart. It owns no part of the product and uses only its front door: the binary, its file and
// its admin listener. Linux only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The children: processes of this program's own binary.
const (
	childUpstream = "upstream"
	childLoad     = "load"
	childProfiled = "profiled"
)

// parts is what the program does, by its first argument; without one it measures.
var parts = map[string]func(ctx context.Context, args []string, stdout io.Writer) error{
	childUpstream:  runUpstream,
	childLoad:      runLoad,
	childProfiled:  runProfiled,
	"instructions": runInstructions,
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	part := measureAll
	if len(args) > 0 && parts[args[0]] != nil {
		part, args = parts[args[0]], args[1:]
	}
	err := part(ctx, args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// plan is what to measure, and for how long.
type plan struct {
	Quick    bool          `json:"quick"`
	Budget   time.Duration `json:"budget"` // of the whole run, in nanoseconds
	Rounds   int           `json:"rounds"`
	Sections []string      `json:"sections"`

	into    string
	peers   string
	gateway string
}

func parsePlan(args []string, out io.Writer) (*plan, error) {
	p := &plan{}
	var sections string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.BoolVar(&p.Quick, "quick", false, "about two minutes: fewer rounds and points, figures for the eye only")
	f.DurationVar(&p.Budget, "budget", 0, "time of the whole run, divided over the sections (default 17m, with -quick 110s)")
	f.IntVar(&p.Rounds, "rounds", 0, "rounds of each point; in each the targets take turns (default 5, with -quick 2)")
	f.StringVar(&sections, "sections", "", "sections to measure, separated by commas (default all: "+strings.Join(sectionNames(), ",")+")")
	f.StringVar(&p.into, "report", "bench/report", "directory for the report: report.md, report.json, plots, profiles")
	f.StringVar(&p.peers, "peers", "bench/peers.yaml", "other gateways; see peers.example.yaml")
	f.StringVar(&p.gateway, "gateway", "", "a gateway's binary to measure; default: one is built from the source")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	def := func(quick, full time.Duration) time.Duration {
		if p.Quick {
			return quick
		}
		return full
	}
	if p.Budget == 0 {
		p.Budget = def(110*time.Second, 17*time.Minute)
	}
	if p.Rounds == 0 {
		p.Rounds = int(def(2, 5))
	}
	if p.Rounds < 0 || p.Budget < 10*time.Second {
		return nil, errors.New("at least one round and 10s are needed")
	}
	p.Sections = sectionNames()
	if sections != "" {
		p.Sections = strings.Split(sections, ",")
	}
	for _, s := range p.Sections {
		if !slices.Contains(sectionNames(), s) {
			return nil, fmt.Errorf("-sections: there is no %q; there are %s", s, strings.Join(sectionNames(), ", "))
		}
	}
	return p, nil
}
