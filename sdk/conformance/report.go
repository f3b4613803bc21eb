package conformance

import (
	"fmt"
	"strings"
)

// Finding is one thing that is wrong.
type Finding struct {
	Fixture string // "" where none is concerned
	Check   string // what was looked at, in a few words
	Detail  string
}

// String is the finding as a line.
func (f Finding) String() string {
	if f.Fixture == "" {
		return f.Check + ": " + f.Detail
	}
	return f.Fixture + ": " + f.Check + ": " + f.Detail
}

// Report is what a check found.
type Report struct {
	Findings []Finding
	Calls    int // how many calls the plugin answered
	Fixtures int
}

// OK says whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// String lists the findings, a line each, and ends with a line that sums up.
func (r *Report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	fmt.Fprintf(&b, "%d fixtures, %d calls, %d findings\n", r.Fixtures, r.Calls, len(r.Findings))
	return b.String()
}

// T is the part of testing.TB that Run needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}
