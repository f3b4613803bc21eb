package conformance

import (
	"fmt"
	"slices"
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

// Look is one thing that was looked at.
type Look struct {
	Fixture string // "" where none is concerned
	Check   string
}

// Answer is what a plugin answered where a fixture expects something else.
type Answer struct {
	Fixture string
	Part    string // the fixture's, as in want.json
	Text    []byte // what it would have to hold
}

// Report is what a check found.
type Report struct {
	Findings []Finding
	Looks    []Look   // in order, each once
	Answers  []Answer // the first for each part
	Calls    int      // how many calls the plugin answered
	Fixtures int
}

func (r *Report) looked(fixture, check string) {
	if l := (Look{fixture, check}); !slices.Contains(r.Looks, l) {
		r.Looks = append(r.Looks, l)
	}
}

func (r *Report) answered(fixture, part string, text []byte) {
	if !slices.ContainsFunc(r.Answers, func(a Answer) bool { return a.Fixture == fixture && a.Part == part }) {
		r.Answers = append(r.Answers, Answer{fixture, part, slices.Clone(text)})
	}
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
