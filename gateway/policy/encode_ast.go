package policy

import (
	"encoding/json"
	"math"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// astSink builds facts as OPA's terms, so that an evaluation has nothing to parse.
type astSink struct {
	fields [][2]*ast.Term // of the objects that are open, outermost first
	starts []int          // where each begins
	names  []string
}

func encodeAST(in asked) ast.Value {
	s := &astSink{fields: make([][2]*ast.Term, 0, 24)}
	in.facts(s)
	return ast.NewObject(s.fields...)
}

func (s *astSink) add(name string, value *ast.Term) {
	s.fields = append(s.fields, [2]*ast.Term{ast.InternedTerm(name), value})
}

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

func (s *astSink) text(name, value string) { s.add(name, ast.InternedTerm(value)) }

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
