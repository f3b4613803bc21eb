package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one fault of a configuration file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1
	Key     string `json:"key"`    // the path of keys, as in groups[0].channels[1].provider
	Message string `json:"message"`

	lenient bool // a warning that Strict leaves one
}

// String is one line: file:line:column: key: message.
func (p Problem) String() string {
	s := p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + ": "
	if p.Key != "" {
		s += p.Key + ": "
	}
	return s + p.Message
}

// Invalid is the error of a configuration that cannot be used: every fault in it.
type Invalid struct{ Problems []Problem }

// Error lists the problems, one a line.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func sorted(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(list)
}
