package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one fault of a bundle. Line and Column are from 1; 0 where there is none to name.
type Fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		if f.Column > 0 {
			fmt.Fprintf(&b, ":%d", f.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Errors is every fault of a bundle that was found, by file and line: each once, and not more
// than maxFaults of them. Only the decisions are not asked for where something else is wrong.
type Errors []Fault

// maxFaults bounds a list of faults. A table with the same slip in each of its rows is not
// described better by thousands of lines.
const maxFaults = 200

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sorted returns the faults in the order of files and lines, each once.
func (e Errors) sorted() Errors {
	slices.SortFunc(e, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(e)
}

// bounded returns the faults sorted. Of too many the first are left, and one that says how many
// are not there.
func (e Errors) bounded() Errors {
	e = e.sorted()
	if len(e) <= maxFaults {
		return e
	}
	return append(e[:maxFaults:maxFaults], Fault{Message: fmt.Sprintf("… and %d faults more", len(e)-maxFaults)})
}

// orNil avoids an error that is not nil and holds no fault.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e.sorted()
}
