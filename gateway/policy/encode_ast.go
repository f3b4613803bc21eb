package policy

import (
	"encoding/json"
	"math"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// astSink builds facts as OPA's terms, so that an evaluation has nothing to parse.
type astSink struct {
	fields [][2]*ast.Term // of the objects that are open, outermost first
	starts []int          // where each begins
	names  []string
	shared map[string]*ast.Term
}

func encodeAST(in asked) ast.Value {
	s := &astSink{fields: make([][2]*ast.Term, 0, 24), starts: make([]int, 0, 4), names: make([]string, 0, 4), shared: sharedTerms()}
	in.facts(s)
	return ast.NewObject(s.fields...)
}

func (s *astSink) add(name string, value *ast.Term) {
	s.fields = append(s.fields, [2]*ast.Term{s.term(name), value})
}

// term returns the shared term of a word that the schema has, so that the many names and words
// of an input are not made anew for each.
func (s *astSink) term(text string) *ast.Term {
	if shared, ok := s.shared[text]; ok {
		return shared
	}
	return ast.InternedTerm(text)
}

// sharedTerms are the input schema's field names and words. Terms are not changed.
var sharedTerms = sync.OnceValue(func() map[string]*ast.Term {
	all := map[string]*ast.Term{"": ast.InternedTerm(""), "chat": ast.StringTerm("chat"), "unknown": ast.StringTerm("unknown")}
	add := func(text string) {
		if all[text] == nil {
			all[text] = ast.StringTerm(text)
		}
	}
	for p := range points {
		for path := range pathsOf(p).fields {
			for name := range strings.SplitSeq(path, ".") {
				add(name)
			}
		}
	}
	for _, words := range enums() {
		for _, w := range words {
			add(w)
		}
	}
	return all
})

func (s *astSink) open(name string) {
	s.starts = append(s.starts, len(s.fields))
	s.names = append(s.names, name)
}

func (s *astSink) close() {
	top := len(s.starts) - 1
	start, name := s.starts[top], s.names[top]
	object := ast.ObjectTerm(s.fields[start:]...)
	s.starts, s.names, s.fields = s.starts[:top], s.names[:top], s.fields[:start]
	s.add(name, object)
}

func (s *astSink) text(name, value string) { s.add(name, s.term(value)) }

func (s *astSink) flag(name string, value bool) { s.add(name, ast.InternedTerm(value)) }

func (s *astSink) number(name string, value int64) {
	s.add(name, ast.InternedTerm(int(value)))
}

func (s *astSink) ratio(name string, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		s.text(name, "unknown")
		return
	}
	s.add(name, ast.NumberTerm(json.Number(ratioText(value))))
}

// raw takes text that was made by canonical: it always parses.
func (s *astSink) raw(name, text string) {
	switch text {
	case "{}":
		s.add(name, ast.InternedEmptyObject)
	case "[]":
		s.add(name, ast.InternedEmptyArray)
	default:
		var v any
		if err := util.UnmarshalJSON([]byte(text), &v); err != nil {
			v = nil
		}
		s.add(name, ast.NewTerm(ast.MustInterfaceToValue(v)))
	}
}
