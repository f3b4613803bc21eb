package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/server"
)

// runProfiled is the gateway inside this program, with a processor profile from the moment
// it serves until it is told to stop.
func runProfiled(ctx context.Context, args []string, _ io.Writer) error {
	f := flag.NewFlagSet(partProfiled, flag.ContinueOnError)
	path := f.String("config", "", "")
	profile := f.String("profile", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	s, err := server.New(ctx, server.Options{Path: *path, Version: "bench"})
	if err != nil {
		return err
	}
	out, err := os.Create(*profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	context.AfterFunc(ctx, pprof.StopCPUProfile)
	if err := s.Run(ctx, nil); err != nil {
		return err
	}
	pprof.StopCPUProfile()
	return out.Close()
}

// A share is a part of the gateway's processor time, known by a function on the stack; the
// first that matches counts.
type share struct {
	name string
	any  []string
}

var shares = []share{
	{"the ledger's writer (encoding, SQLite, its file)", []string{"gateway/ledger.(*writer)", "gateway/ledger.Open.func", "gateway/ledger.(*Ledger).write", "gateway/ledger.(*Ledger).run", "modernc.org/sqlite", "gateway/storage."}},
	{"the log's writer", []string{"gateway/telemetry.(*sink)"}},
	{"the caller watch's own goroutine", []string{"gateway/downstream/watch.(*kernel)"}},
	{"the proxy path (a request's own goroutine)", []string{"gateway/downstream.", "gateway/flow.", "fasthttp.(*Server)", "fasthttp.(*workerPool)", "gateway/upstream."}},
	{"garbage collection in the background", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"the scheduler, between goroutines", []string{"runtime.mcall", "runtime.mstart", "runtime.systemstack", "runtime.rt0_go", "runtime.goexit0", "runtime.schedule"}},
}

// measureSplit loads a profiled gateway and says where its time went.
func (g *ground) measureSplit(ctx context.Context, p plan, out io.Writer) error {
	fmt.Fprintf(out, "\n## Where the gateway's time goes\n\nA gateway with a profile running, 32 connections, %v each; µs per request and share, by who was on the stack.\n", p.profile)
	for _, k := range []kind{kindPost, kindStream} {
		file := filepath.Join(g.dir, string(k)+".prof")
		if p.keep != "" {
			var err error
			if file, err = filepath.Abs(filepath.Join(p.keep, string(k)+".prof")); err != nil {
				return err
			}
		}
		t, err := g.beginGateway(file)
		if err != nil {
			return err
		}
		m, err := t.measure(ctx, 32, k, p.profile)
		t.end()
		if err != nil {
			return err
		}
		spent, err := readShares(ctx, file)
		if err != nil {
			return err
		}
		printShares(out, k, m, spent)
	}
	return nil
}

func printShares(out io.Writer, k kind, m point, spent map[string]time.Duration) {
	var all time.Duration
	for _, d := range spent {
		all += d
	}
	fmt.Fprintf(out, "\n| %s: %d requests, %.1f µs each | µs | %% |\n| --- | --- | --- |\n", k, m.Requests, m.perRequest)
	for _, s := range append(shares, share{name: "the rest"}) {
		part := float64(spent[s.name]) / float64(max(all, 1))
		fmt.Fprintf(out, "| %s | %.1f | %.0f |\n", s.name, part*m.perRequest, 100*part)
	}
}

// readShares adds up the samples of a profile by share. `go tool pprof` prints every stack,
// innermost first, under the time that was spent in it.
func readShares(ctx context.Context, file string) (map[string]time.Duration, error) {
	c := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", file)
	var problems bytes.Buffer
	c.Stderr = &problems
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w: %s", err, problems.Bytes())
	}
	spent := map[string]time.Duration{}
	_, text, _ = bytes.Cut(text, []byte("-----------+"))
	for stack := range strings.SplitSeq(string(text), "-----------+") {
		f := strings.Fields(strings.TrimLeft(stack, "-"))
		if len(f) < 2 {
			continue
		}
		took, err := time.ParseDuration(f[0])
		if err != nil {
			continue
		}
		spent[owner(stack)] += took
	}
	return spent, nil
}

func owner(stack string) string {
	for _, s := range shares {
		for _, f := range s.any {
			if strings.Contains(stack, f) {
				return s.name
			}
		}
	}
	return "the rest"
}
