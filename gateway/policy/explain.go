package policy

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Fired is one rule that gave something while a decision was made.
type Fired struct {
	File  string          `json:"file"`
	Line  int             `json:"line"`
	Rule  string          `json:"rule"`            // its path, such as data.interlock.replay.verdict
	Value json.RawMessage `json:"value,omitempty"` // what it gave; left out where that was not known yet
}

// Explain decides like Evaluate, and returns the rules that gave something, in the order in
// which they were done. The whole trace, every expression that was looked at, goes to trace
// unless that is nil. It is many times slower than a decision: for the tools, never for a
// request.
func (r *Revision) Explain(ctx context.Context, p Point, input json.RawMessage, trace io.Writer) (json.RawMessage, []Fired, error) {
	value, err := filled(p, input)
	if err != nil {
		return nil, nil, err
	}
	query, _ := r.of(p)
	tracer := topdown.NewBufferTracer()
	ctx, cancel := context.WithTimeout(ctx, max(probeTimeout, r.options.Timeout))
	defer cancel()
	// Its result is that of the decision below: only the trace counts here, and there is one
	// of a decision that cannot be made, too.
	_, _ = query.Eval(ctx, rego.EvalParsedInput(value), rego.EvalTransaction(r.txn), rego.EvalQueryTracer(tracer))
	if trace != nil {
		topdown.PrettyTraceWithOpts(trace, *tracer, topdown.PrettyTraceOptions{Locations: true, ExprVariables: true})
	}
	output, err := r.Evaluate(ctx, p, input)
	return output, firedIn(*tracer), err
}

// firedIn finds the rules that were left by their end: those that gave something.
func firedIn(trace []*topdown.Event) []Fired {
	var all []Fired
	for _, e := range trace {
		rule, ok := e.Node.(*ast.Rule)
		if e.Op != topdown.ExitOp || !ok || rule.Location == nil {
			continue
		}
		f := Fired{File: rule.Location.File, Line: rule.Location.Row, Rule: pathOf(rule)}
		f.Value = valueOf(e, rule)
		if !slices.ContainsFunc(all, func(g Fired) bool {
			return g.File == f.File && g.Line == f.Line && string(g.Value) == string(f.Value)
		}) {
			all = append(all, f)
		}
	}
	return all
}

// pathOf names a rule; an else-branch has the name of its rule.
func pathOf(rule *ast.Rule) string {
	if rule.Module == nil {
		return rule.Head.Ref().String()
	}
	return rule.Module.Package.Path.String() + "." + strings.TrimPrefix(rule.Head.Ref().String(), "data.")
}

// valueOf returns what a rule gave, with the variables of its body put in; nil where some of
// it is not bound.
func valueOf(e *topdown.Event, rule *ast.Rule) json.RawMessage {
	if rule.Head.Value == nil || e.Locals == nil {
		return nil
	}
	bound := func(v ast.Var) ast.Value { return e.Locals.Get(v) }
	value, ok := substituted(rule.Head.Value.Value, bound, 0)
	if !ok {
		return nil
	}
	plain, err := ast.JSON(value)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil
	}
	return text
}

// substituted puts values in the place of variables.
func substituted(v ast.Value, bound func(ast.Var) ast.Value, depth int) (ast.Value, bool) {
	const deepest = 32
	if depth > deepest {
		return nil, false
	}
	switch v := v.(type) {
	case ast.Var:
		inner := bound(v)
		if inner == nil {
			return nil, false
		}
		return substituted(inner, bound, depth+1)
	case ast.Object:
		fields := make([][2]*ast.Term, 0, v.Len())
		whole := true
		v.Foreach(func(name, inner *ast.Term) {
			value, ok := substituted(inner.Value, bound, depth+1)
			whole = whole && ok
			fields = append(fields, [2]*ast.Term{name, ast.NewTerm(value)})
		})
		if !whole {
			return nil, false
		}
		return ast.NewObject(fields...), true
	case *ast.Array:
		terms := make([]*ast.Term, 0, v.Len())
		for i := range v.Len() {
			value, ok := substituted(v.Elem(i).Value, bound, depth+1)
			if !ok {
				return nil, false
			}
			terms = append(terms, ast.NewTerm(value))
		}
		return ast.NewArray(terms...), true
	case ast.Ref, ast.Call:
		return nil, false
	default:
		return v, v.IsGround()
	}
}
