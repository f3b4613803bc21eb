package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// RehearseOptions say which tests are run, and how.
type RehearseOptions struct {
	Run      string // a regular expression of "package.name"; "" is all
	Coverage bool
	Timeout  time.Duration // of one test; 0 is 30 s
	Grants   []string
}

// Rehearsal is what the tests of bundles said.
type Rehearsal struct {
	Tests    []Tested
	Coverage []FileCoverage // of the bundles' own rules, by file; nil without it
	Percent  float64        // of all their lines together
}

// Passed returns how many tests passed, failed (with those that broke) and were left out.
func (r *Rehearsal) Passed() (passed, failed, skipped int) {
	for _, t := range r.Tests {
		switch {
		case t.Skipped:
			skipped++
		case t.Failed():
			failed++
		default:
			passed++
		}
	}
	return passed, failed, skipped
}

// Tested is one test.
type Tested struct {
	Package string
	Name    string
	File    string
	Line    int
	Skipped bool   // its name begins with todo_
	Wrong   string // "" where it passed: the expression that did not hold, with its place, or the error
	Output  string // what it printed
	Took    time.Duration
}

// Failed reports whether it did not hold, or broke.
func (t *Tested) Failed() bool { return t.Wrong != "" }

// FileCoverage is how much of one file the tests reached.
type FileCoverage struct {
	File    string
	Percent float64
	Missed  []Lines
}

// Lines are lines of a file, both ends included.
type Lines struct{ From, To int }

// Rehearse runs the Rego tests that lie beside the bundles' rules, with what no bundle owns
// taken from the default one, as in the gateway. An error is an Errors where the bundles or
// the tests do not compile.
func Rehearse(ctx context.Context, sources []Source, o RehearseOptions) (*Rehearsal, error) {
	bundles := make([]*Bundle, len(sources))
	for i, src := range sources {
		var err error
		if bundles[i], err = Read(ctx, src); err != nil {
			return nil, err
		}
	}
	w := newWorkspace(o.Grants)
	faults, err := w.putTogether(ctx, bundles, true)
	if err != nil {
		return nil, err
	}
	if err := faults.orNil(); err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	compiler, modules := w.testCompiler(), copied(w.modules)
	maps.Copy(modules, copied(w.tests))
	store := inmem.NewFromObject(w.data.root)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().SetCompiler(compiler).SetStore(store).SetModules(modules).
		EnableTracing(true).CapturePrintOutput(true).SetTimeout(o.Timeout).Filter(o.Run)
	var reached *cover.Cover
	if o.Coverage {
		reached = cover.New()
		runner = runner.SetCoverageQueryTracer(reached)
	}
	compiling.Lock()
	results, err := runner.RunTests(ctx, txn)
	compiling.Unlock()
	if compiler.Failed() {
		return nil, faultsOf(compiler.Errors).orNil()
	}
	if err != nil {
		return nil, err
	}
	all := &Rehearsal{}
	for result := range results {
		all.Tests = append(all.Tests, testedOf(result))
	}
	slices.SortStableFunc(all.Tests, func(a, b Tested) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	if reached != nil {
		all.covered(reached.Report(modules), w.own)
	}
	return all, ctx.Err()
}

func testedOf(r *tester.Result) Tested {
	t := Tested{
		Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Skipped: r.Skip, Took: r.Duration, Output: string(r.Output),
	}
	if r.Location != nil {
		t.File, t.Line = r.Location.File, r.Location.Row
	}
	switch {
	case r.Error != nil:
		t.Wrong = "it broke: " + r.Error.Error()
	case r.Fail:
		t.Wrong = "it does not hold" + failedAt(r)
	}
	return t
}

// failedAt finds the last expression that did not hold.
func failedAt(r *tester.Result) string {
	expr := r.FailedAt
	for _, e := range slices.Backward(r.Trace) {
		found, isExpr := e.Node.(*ast.Expr)
		if expr == nil && e.Op == topdown.FailOp && isExpr && e.QueryID != 0 {
			expr = found
		}
	}
	if expr == nil || expr.Location == nil {
		return ""
	}
	text := strings.TrimSpace(string(expr.Location.Text))
	return fmt.Sprintf(": %s:%d: %s", expr.Location.File, expr.Location.Row, text)
}

// covered takes from a report what it says of the bundles' own rules.
func (r *Rehearsal) covered(report cover.Report, own map[string]bool) {
	covered, missed := 0, 0
	for name, file := range report.Files {
		if !own[name] {
			continue
		}
		c := FileCoverage{File: name, Percent: file.Coverage}
		covered += file.CoveredLines
		missed += file.NotCoveredLines
		for _, lines := range file.NotCovered {
			c.Missed = append(c.Missed, Lines{lines.Start.Row, lines.End.Row})
		}
		r.Coverage = append(r.Coverage, c)
	}
	slices.SortFunc(r.Coverage, func(a, b FileCoverage) int { return strings.Compare(a.File, b.File) })
	r.Percent = 100
	if covered+missed > 0 {
		r.Percent = 100 * float64(covered) / float64(covered+missed)
	}
}
