// Command bench compares the gateway with nginx in front of the same upstream on the same
// machine: processor time per request and per stream, latency, memory under slow streams,
// the time to become ready, and where the gateway's time goes.
//
// It is a program to run and read, not a test: it asserts nothing. Upstream, load, gateway
// and nginx are processes of their own, so that each one's processor time can be told apart.
// It owns no part of the product and uses only its front door: the binary and its file.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program. Its first argument may name one of the parts that it starts as
// processes of their own; otherwise it measures.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	part := measureAll
	if len(args) > 0 {
		switch args[0] {
		case partUpstream:
			part, args = runUpstream, args[1:]
		case partLoad:
			part, args = runLoad, args[1:]
		case partProfiled:
			part, args = runProfiled, args[1:]
		}
	}
	err := part(ctx, args, stdout)
	if err == flag.ErrHelp {
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// The parts that run as processes of their own, by the first argument.
const (
	partUpstream = "upstream"
	partLoad     = "load"
	partProfiled = "profiled"
)

// plan is what to measure.
type plan struct {
	duration    time.Duration // of one point
	rounds      int
	connections []int
	slow        int           // streams
	slowFor     time.Duration // the length of each
	starts      int
	profile     time.Duration // of each of the two profiles
	keep        string        // directory for the profiles; "" = they are thrown away
}

func parsePlan(args []string, out io.Writer) (plan, error) {
	var p plan
	var conns string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.DurationVar(&p.duration, "duration", 2*time.Second, "length of one measurement")
	f.IntVar(&p.rounds, "rounds", 5, "rounds; in each, gateway and nginx take turns in going first")
	f.StringVar(&conns, "connections", "1,32,128", "numbers of connections")
	f.IntVar(&p.slow, "slow-streams", 1000, "streams held open at once for the memory figure; 0 = skip")
	f.DurationVar(&p.slowFor, "slow-for", 8*time.Second, "length of a slow stream, at 10 events a second")
	f.IntVar(&p.starts, "starts", 5, "starts measured for the time to become ready")
	f.DurationVar(&p.profile, "profile", 4*time.Second, "length of each profiled load; 0 = skip")
	f.StringVar(&p.keep, "keep", "", "directory in which the profiles are kept")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if f.NArg() > 0 {
		return p, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	for _, s := range strings.Split(conns, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return p, fmt.Errorf("-connections: %q is not a number of connections", s)
		}
		p.connections = append(p.connections, n)
	}
	if p.rounds < 1 || p.duration < 100*time.Millisecond {
		return p, fmt.Errorf("at least one round of 100ms")
	}
	return p, nil
}
