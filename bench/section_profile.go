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
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/server"
)

// The profiles, by the names of their files. Only the processor's is taken under its own load:
// the others' sampling would be in it.
const (
	profileCPU    = "cpu"
	profileAllocs = "allocs"
	profileMutex  = "mutex"
	profileBlock  = "block"
)

// runProfiled is the gateway inside this program, with profiles from the moment it serves
// until it is told to stop.
func runProfiled(ctx context.Context, args []string, _ io.Writer) error {
	f := flag.NewFlagSet(childProfiled, flag.ContinueOnError)
	path := f.String("config", "", "")
	into := f.String("into", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	contention := strings.HasSuffix(*into, "-waits")
	if contention {
		runtime.SetMutexProfileFraction(1)
		runtime.SetBlockProfileRate(1)
	} else {
		runtime.MemProfileRate = 8 << 10
	}
	s, err := server.New(ctx, server.Options{Path: *path, Version: "bench"})
	if err != nil {
		return err
	}
	if contention {
		if err := s.Run(ctx, nil); err != nil {
			return err
		}
		return writeProfiles(*into, profileMutex, profileBlock)
	}
	out, err := os.Create(filepath.Join(*into, profileCPU+".prof"))
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
	if err := out.Close(); err != nil {
		return err
	}
	return writeProfiles(*into, profileAllocs)
}

func writeProfiles(dir string, names ...string) error {
	for _, name := range names {
		out, err := os.Create(filepath.Join(dir, name+".prof"))
		if err != nil {
			return err
		}
		if err := pprof.Lookup(name).WriteTo(out, 0); err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	return nil
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
	{"a request's own goroutine: system calls", []string{"internal/runtime/syscall.", "syscall.Syscall", "syscall.RawSyscall"}},
	{"a request's own goroutine: the rest", []string{"gateway/downstream.", "gateway/flow.", "fasthttp.(*Server)", "fasthttp.(*workerPool)", "gateway/upstream."}},
	{"garbage collection in the background", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"the scheduler, between goroutines", []string{"runtime.mcall", "runtime.mstart", "runtime.systemstack", "runtime.rt0_go", "runtime.goexit0", "runtime.schedule"}},
}

const theRest = "the rest"

// profile loads a gateway with profiles running and says where its time, its allocations and
// its waits went. The profiles stay beside the report.
func (s *section) profile(ctx context.Context) error {
	s.say(fmt.Sprintf("A gateway with a profile running, %d connections; µs per request by who was on the stack. The profiles are kept beside the report in profiles/, for `go tool pprof`.", busy))
	each := s.each(4)
	var split [][]string
	parts := map[string][]string{}
	for _, k := range []kind{post, stream} {
		dir := filepath.Join(s.r.plan.into, "profiles", k.name)
		m, err := s.profiled(ctx, k, dir, each)
		if err != nil {
			return err
		}
		spent, err := readShares(ctx, filepath.Join(dir, profileCPU+".prof"))
		if err != nil {
			return err
		}
		var all time.Duration
		for _, d := range spent {
			all += d
		}
		for _, sh := range append(slices.Clone(shares), share{name: theRest}) {
			part := divided(float64(spent[sh.name]), float64(all))
			v := s.record("cpu_share", sh.name, k.name, "µs", []float64{part * m.perRequest()})
			parts[sh.name] = append(parts[sh.name], v.String(), fmt.Sprintf("%.0f", 100*part))
		}
		parts["all"] = append(parts["all"], number(m.perRequest()), "100")
	}
	for _, sh := range append(slices.Clone(shares), share{name: theRest}, share{name: "all"}) {
		split = append(split, append([]string{sh.name}, parts[sh.name]...))
	}
	s.table([]string{"", "post, µs", "%", "stream, µs", "%"}, split)
	if err := s.allocations(ctx); err != nil {
		return err
	}
	dir := filepath.Join(s.r.plan.into, "profiles", "post-waits")
	if _, err := s.profiled(ctx, post, dir, each); err != nil {
		return err
	}
	for _, p := range []struct{ file, title string }{
		{profileMutex, "Waiting for locks (mutex profile of post; time that others waited, by who held)"},
		{profileBlock, "Blocked (block profile of post; what waits for work by design is in it)"},
	} {
		rows, err := topOf(ctx, filepath.Join(dir, p.file+".prof"), "delay", 8)
		if err != nil {
			return err
		}
		s.say(p.title + ":")
		s.table([]string{"where", "time", "%"}, rows)
	}
	return nil
}

// profiled runs a load against a fresh gateway whose profiles go into the directory.
func (s *section) profiled(ctx context.Context, k kind, dir string, long time.Duration) (*sample, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	set, err := s.r.setting("gateway, profiled")
	if err != nil {
		return nil, err
	}
	set.profiled = dir
	t, err := set.begin()
	if err != nil {
		return nil, err
	}
	m, err := s.shoot(ctx, t, job{Mode: closed, Connections: busy, Want: k.want, Duration: long, Requests: of(k)(t)})
	s.closeAll(ctx, []*target{t})
	return m, err
}

// allocations shows who allocates, by bytes, over everything since the start.
func (s *section) allocations(ctx context.Context) error {
	rows, err := topOf(ctx, filepath.Join(s.r.plan.into, "profiles", post.name, profileAllocs+".prof"), "alloc_space", 12)
	if err != nil {
		return err
	}
	s.say("Allocations of post by bytes, the start-up's too (a test in gateway/server bounds a request's):")
	s.table([]string{"where", "bytes", "%"}, rows)
	return nil
}

// topOf is the first lines of pprof's table: name, value, percent.
func topOf(ctx context.Context, file, index string, n int) ([][]string, error) {
	text, err := pprofTool(ctx, "-top", "-sample_index="+index, "-nodecount="+strconv.Itoa(n), file)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	_, table, _ := strings.Cut(string(text), "cum%")
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) >= 6 && f[0] != "0" {
			rows = append(rows, []string{"`" + strings.Join(f[5:], " ") + "`", f[0], f[1]})
		}
	}
	return rows, nil
}

// pprofTool runs `go tool pprof` on a profile.
func pprofTool(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", append([]string{"tool", "pprof"}, args...)...)
	var problems bytes.Buffer
	c.Stderr = &problems
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w: %s", err, problems.Bytes())
	}
	return text, nil
}

// readShares adds up the samples of a profile by share. `go tool pprof` prints every stack,
// innermost first, under the time that was spent in it.
func readShares(ctx context.Context, file string) (map[string]time.Duration, error) {
	text, err := pprofTool(ctx, "-traces", file)
	if err != nil {
		return nil, err
	}
	spent := map[string]time.Duration{}
	_, text, _ = bytes.Cut(text, []byte("-----------+"))
	for stack := range strings.SplitSeq(string(text), "-----------+") {
		f := strings.Fields(strings.TrimLeft(stack, "-"))
		if len(f) < 2 {
			continue
		}
		if took, err := time.ParseDuration(f[0]); err == nil {
			spent[owner(stack)] += took
		}
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
	return theRest
}
