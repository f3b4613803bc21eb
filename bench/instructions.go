package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Instructions of a request, counted by valgrind: a figure that does not depend on how busy a
// machine is, for continuous integration. The gateway's binary runs under cachegrind (without
// its cache model) on one thread of Go's, upstream and load run outside of it. Two runs, of n
// and of 3n requests; their difference over 2n is what a request costs, start-up taken out.
//
// SQLite and the scheduler are counted apart and not compared: how many requests share a commit,
// and who waits for whom, depends on how fast requests come, and under valgrind that is ten
// times slower and the machine's affair.

// figures is bench/instructions.json.
type figures struct {
	About string           `json:"about"`
	Go    string           `json:"go"`
	Bound float64          `json:"bound"` // a figure may be so many times the committed one
	Loads map[string]ofOne `json:"instructions"`
}

// ofOne is the instructions of one request, by where they are.
type ofOne struct {
	Compared  float64 `json:"compared"`  // the next three
	Gateway   float64 `json:"gateway"`   // functions of our own
	Others    float64 `json:"others"`    // the standard library and other modules
	Memory    float64 `json:"memory"`    // the runtime's, on behalf of a request: see onBehalf
	Scheduler float64 `json:"scheduler"` // the rest of the runtime
	SQLite    float64 `json:"sqlite"`

	tops []string // the functions with the most, as lines
}

// valgrindEnvironment makes Go run under valgrind 3.19, and alike every time: that valgrind
// knows no RDTSCP; preemption by signals and collections would come at other places each time.
var valgrindEnvironment = []string{"GODEBUG=asyncpreemptoff=1,cpu.rdtscp=off", "GOMAXPROCS=1", "GOGC=off"}

// onBehalf is how the runtime's functions begin that do a request's work: memory, maps,
// strings. The others wait and wake, and how often they do differs from run to run.
var onBehalf = []string{
	"runtime.malloc", "runtime.mem", "runtime.map", "internal/runtime/maps", "runtime.growslice", "runtime.makeslice", "runtime.newobject",
	"runtime.nextFree", "runtime.(*mcache)", "runtime.(*mspan)", "runtime.(*mcentral)", "runtime.(*mheap)", "runtime.typed", "runtime.bulkBarrier", "runtime.gcWriteBarrier", "runtime.heapSetType",
	"runtime.concat", "runtime.slicebyte", "runtime.string", "runtime.strequal", "runtime.duff", "runtime.assert", "runtime.conv", "runtime.efaceeq", "runtime.ifaceeq",
	"runtime.interhash", "runtime.aeshash", "runtime.strhash", "runtime.defer", "runtime.panic",
}

// runInstructions compares with the committed figures, or writes them.
func runInstructions(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("instructions", flag.ContinueOnError)
	f.SetOutput(out)
	file := f.String("figures", "bench/instructions.json", "the committed figures")
	write := f.Bool("write", false, "write them instead of comparing")
	binary := f.String("gateway", "", "a gateway's binary; default: one is built from the source")
	n := f.Int("n", 150, "requests of the shorter run; the longer has three times as many")
	top := f.Int("top", 0, "print so many functions, those with the most instructions themselves")
	if err := f.Parse(args); err != nil {
		return err
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		fmt.Fprintln(out, "instructions: left out: there is no valgrind on this machine")
		return nil
	}
	if runtime.GOARCH != "amd64" {
		fmt.Fprintln(out, "instructions: left out: the committed figures are amd64's")
		return nil
	}
	known := figures{Bound: 1.10}
	text, err := os.ReadFile(*file)
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil && !*write {
		return fmt.Errorf("%s: %w", *file, err)
	}
	g, err := prepare(ctx, "127.0.0.1:0", *binary)
	if err != nil {
		return err
	}
	defer g.end()
	now := figures{
		About: "instructions of one request, written by `make instructions-write`; bench/README.md says how they are counted",
		Go:    runtime.Version(), Bound: known.Bound, Loads: map[string]ofOne{},
	}
	for _, k := range []kind{post, stream} {
		if now.Loads[k.name], err = g.instructions(ctx, k, *n, *top); err != nil {
			return err
		}
	}
	if *write {
		b, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(*file, append(b, '\n'), 0o644)
	}
	return compare(known, now, out)
}

// compare prints both figures and says which are past the bound.
func compare(known, now figures, out io.Writer) error {
	var worse []error
	for _, k := range []kind{post, stream} {
		a, b := known.Loads[k.name], now.Loads[k.name]
		ratio := divided(b.Compared, a.Compared)
		fmt.Fprintf(out, "instructions: %-7s %.0f a request, committed %.0f: %.3f × (gateway %.0f, others %.0f, memory %.0f; not compared: scheduler %.0f, SQLite %.0f)\n",
			k.name, b.Compared, a.Compared, ratio, b.Gateway, b.Others, b.Memory, b.Scheduler, b.SQLite)
		for _, line := range b.tops {
			fmt.Fprintln(out, line)
		}
		switch {
		case a.Compared == 0:
			worse = append(worse, fmt.Errorf("%s: there is no committed figure", k.name))
		case ratio > known.Bound:
			worse = append(worse, fmt.Errorf("%s: %.3f × the committed figure, and %.2f × is allowed: find what costs it, or commit the new figure (make instructions-write) with a word on why it is worth it", k.name, ratio, known.Bound))
		case ratio < 1/known.Bound:
			fmt.Fprintf(out, "instructions: %s: that much better is worth committing: make instructions-write\n", k.name)
		}
	}
	if known.Go != now.Go {
		fmt.Fprintf(out, "instructions: the committed figures are %s's, these are %s's\n", known.Go, now.Go)
	}
	return errors.Join(worse...)
}

// instructions counts one load: both runs at once, on two processors.
func (g *ground) instructions(ctx context.Context, k kind, n, top int) (ofOne, error) {
	var counts [2]map[string]float64
	var failed [2]error
	settings := [2]*setting{}
	for i := range settings {
		var err error
		if settings[i], err = g.setting("gateway"); err != nil {
			return ofOne{}, err
		}
	}
	var both sync.WaitGroup
	for i, requests := range []int{n, 3 * n} {
		both.Go(func() { counts[i], failed[i] = settings[i].counted(ctx, k, requests) })
	}
	both.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return ofOne{}, err
	}
	var sum ofOne
	one := make(map[string]float64, len(counts[1]))
	for name := range counts[1] {
		one[name] = (counts[1][name] - counts[0][name]) / float64(2*n)
		*sum.part(name) += one[name]
	}
	sum.top(one, top)
	sum.Compared = sum.Gateway + sum.Others + sum.Memory
	for _, v := range []*float64{&sum.Compared, &sum.Gateway, &sum.Others, &sum.Memory, &sum.Scheduler, &sum.SQLite} {
		*v = float64(int(*v))
	}
	return sum, nil
}

// top keeps the functions with the most instructions, as lines to print.
func (o *ofOne) top(one map[string]float64, n int) {
	names := slices.SortedFunc(maps.Keys(one), func(a, b string) int { return cmp.Compare(one[b], one[a]) })
	for _, name := range names[:min(n, len(names))] {
		o.tops = append(o.tops, fmt.Sprintf("%8.0f %s", one[name], name))
	}
}

// part is where a function counts.
func (o *ofOne) part(function string) *float64 {
	begins := func(with string) bool { return strings.HasPrefix(function, with) }
	switch {
	case begins("modernc.org/"):
		return &o.SQLite
	case begins("github.com/interlock-gateway/"):
		return &o.Gateway
	case slices.ContainsFunc(onBehalf, begins):
		return &o.Memory
	case begins("runtime.") || begins("runtime/") || begins("internal/runtime/"):
		return &o.Scheduler
	default:
		return &o.Others
	}
}

// counted runs the gateway under valgrind for so many requests and returns its instructions by
// function.
func (s *setting) counted(ctx context.Context, k kind, requests int) (map[string]float64, error) {
	file, counts := filepath.Join(s.dir, "interlock.yaml"), filepath.Join(s.dir, "counts")
	if err := s.write(file); err != nil {
		return nil, err
	}
	p, err := begin(filepath.Join(s.dir, "log"), "env", slices.Concat(valgrindEnvironment, []string{
		"valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=" + counts,
		s.binary, "serve", "--config", file,
	})...)
	if err != nil {
		return nil, err
	}
	defer p.end()
	ready := "http://" + s.under("admin")["listen"].(string) + "/readyz"
	if err := p.until(3*time.Minute, func() bool { _, err := fetchText(ctx, ready); return err == nil }); err != nil {
		return nil, fmt.Errorf("under valgrind: %w", err)
	}
	t := &target{process: p, addr: s.under("listen")["address"].(string), path: chatPath, headers: headers{"Authorization": "Bearer " + benchKey}}
	j := job{Mode: closed, Addr: t.addr, Connections: 1, Count: requests, Duration: 5 * time.Minute, Want: k.want, Requests: of(k)(t)}
	sum, err := j.do(ctx, nil)
	if err != nil {
		return nil, err
	}
	if sum.Errors > 0 || sum.Requests != requests {
		return nil, fmt.Errorf("under valgrind: %d of %d requests were answered: %v %s", sum.Requests, requests, sum.Examples, p.output())
	}
	p.end()
	text, err := os.ReadFile(counts)
	if err != nil {
		return nil, fmt.Errorf("valgrind: %w: %s", err, p.output())
	}
	return readCounts(text)
}

// readCounts adds up a file of cachegrind's by function: a line "fn=NAME", then lines of a line
// number and the instructions there.
func readCounts(text []byte) (map[string]float64, error) {
	counts := map[string]float64{}
	name, sum := "", 0.0
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("fn=")); ok {
			name = string(bytes.TrimSpace(rest))
			continue
		}
		f := bytes.Fields(line)
		if len(f) != 2 || f[0][0] < '0' || f[0][0] > '9' {
			continue
		}
		v, err := strconv.ParseFloat(string(f[1]), 64)
		if err != nil {
			return nil, fmt.Errorf("cachegrind's file: %q", line)
		}
		counts[name] += v
		sum += v
	}
	if sum == 0 {
		return nil, errors.New("cachegrind's file counts nothing")
	}
	return counts, nil
}
