package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reach is what a decision point's rules can come to read and call, helpers included: found
// in the compiled rules, whatever the input.
type reach struct {
	rules  []*ast.Rule
	inputs map[string]*ast.Location // input paths read ("failure.class"); "" = all of it, or some part unknown
	tables map[string]*ast.Location // data read, by its first two names ("interlock.matrix")
	steady bool                     // only functions that give the same for the same
	with   bool                     // some expression puts another input in the place of this one

	kinds, endpoints looked // what the rules do with request.kind and request.endpoint
	statuses         []int  // the error statuses that they tell apart
}

// reachOf follows a point's entry point through the graph of rules.
func reachOf(compiler *ast.Compiler, p Point) (*reach, *Fault) {
	entries := compiler.GetRulesWithPrefix(p.ref())
	if len(entries) == 0 {
		return nil, &Fault{Message: "there is no rule " + p.query()}
	}
	r := &reach{inputs: map[string]*ast.Location{}, tables: map[string]*ast.Location{}, steady: true}
	seen := map[*ast.Rule]bool{}
	for len(entries) > 0 {
		rule := entries[len(entries)-1]
		entries = entries[:len(entries)-1]
		if seen[rule] {
			continue
		}
		seen[rule] = true
		r.rules = append(r.rules, rule)
		r.walk(rule)
		if rule.Else != nil { // a node of its own in the graph
			entries = append(entries, rule.Else)
		}
		for dependency := range compiler.Graph.Dependencies(rule) {
			if next, ok := dependency.(*ast.Rule); ok {
				entries = append(entries, next)
			}
		}
	}
	if entry := compiler.GetRulesExact(p.ref()); len(entry) > 0 && len(entry[0].Head.Args) > 0 {
		fault := faultAt(entry[0].Location, p.query()+" is a function; it must be a rule")
		return nil, &fault
	}
	return r, nil
}

func (r *reach) walk(rule *ast.Rule) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			if path, ok := inputPath(x); ok {
				note(r.inputs, path, x[0].Location)
			}
			if path := tablePath(x); path != "" {
				note(r.tables, path, x[0].Location)
			}
		case *ast.Expr:
			r.with = r.with || len(x.With) > 0
			if x.IsCall() {
				r.call(x.Operator())
			}
		case ast.Call:
			if operator, ok := x[0].Value.(ast.Ref); ok {
				r.call(operator)
			}
		}
		return false
	}).Walk(rule)
}

func note(seen map[string]*ast.Location, path string, at *ast.Location) {
	if _, known := seen[path]; !known {
		seen[path] = at
	}
}

func (r *reach) call(operator ast.Ref) {
	if operator.HasPrefix(ast.DefaultRootRef) {
		return // a function of the bundle: its body is walked on its own
	}
	if !steady(operator.String()) {
		r.steady = false
	}
}

// inputPath returns the part of an input ref that is known: input.key.labels[name] is
// "key.labels". ok is false where it is no input ref.
func inputPath(ref ast.Ref) (path string, ok bool) {
	if len(ref) == 0 || !ref[0].Equal(ast.InputRootDocument) {
		return "", false
	}
	var names []string
	for _, term := range ref[1:] {
		name, isString := term.Value.(ast.String)
		if !isString {
			break
		}
		names = append(names, string(name))
	}
	return strings.Join(names, "."), true
}

// tablePath returns the first two names of a data ref, or "" where there are no two that are
// known.
func tablePath(ref ast.Ref) string {
	if len(ref) < 3 || !ref[0].Equal(ast.DefaultRootDocument) {
		return ""
	}
	first, ok := ref[1].Value.(ast.String)
	second, too := ref[2].Value.(ast.String)
	if !ok || !too {
		return ""
	}
	return string(first) + "." + string(second)
}

// lost returns the tables that the rules read and that are nowhere. A rule with an else-branch
// can hide such a loss: it would give its last answer for everything.
func (r *reach) lost(p Point, compiler *ast.Compiler, data map[string]any) Errors {
	var faults Errors
	for path, at := range r.tables {
		first, second, _ := strings.Cut(path, ".")
		ref := ast.Ref{ast.DefaultRootDocument, ast.StringTerm(first), ast.StringTerm(second)}
		if lookUp(data, first, second) != nil || len(compiler.GetRulesWithPrefix(ref)) > 0 {
			continue
		}
		faults = append(faults, faultAt(at, fmt.Sprintf("data.%s is read for %s, and is neither data nor a rule", path, p)))
	}
	return faults
}

// byFields reports whether what the rules of a point give depends on nothing but fields of its
// input, each of which they name: no part of it is looked at as a whole, or by a name from
// elsewhere.
func (r *reach) byFields(p Point) bool {
	fields := layoutOf(example(p)).paths()
	for read := range r.inputs {
		if !slices.ContainsFunc(fields, func(f string) bool { return read == f || strings.HasPrefix(read, f+".") }) {
			return false
		}
	}
	return r.steady && !r.with
}

// detail reports whether the rules read free numbers, or may.
func (r *reach) detail() bool {
	for path := range r.inputs {
		if path == "" || path == "detail" || strings.HasPrefix(path, "detail.") {
			return true
		}
	}
	return false
}

// reads reports whether the rules read that input path, a part of it or a whole around it.
func (r *reach) reads(path string) bool {
	for read := range r.inputs {
		if read == "" || read == path || strings.HasPrefix(read, path+".") || strings.HasPrefix(path, read+".") {
			return true
		}
	}
	return false
}

// foreign returns what a point's rules read that its input never has. The schema cannot see
// it: one schema describes the inputs of all points.
func (r *reach) foreign(p Point) Errors {
	own := pathsOf(p)
	var faults Errors
	for path, at := range r.inputs {
		if !own.has(path) {
			faults = append(faults, faultAt(at, fmt.Sprintf(
				"input.%s is read for %s, whose input has no such field", path, p)))
		}
	}
	return faults
}

// paths are the fields of one point's input.
type paths struct {
	fields map[string]bool
	raws   []string // free-form: anything may be below
	prefix []string
}

func pathsOf(p Point) *paths {
	s := &paths{fields: map[string]bool{"": true}}
	example(p).facts(s)
	return s
}

func (s *paths) has(path string) bool {
	return s.fields[path] || slices.ContainsFunc(s.raws, func(raw string) bool { return strings.HasPrefix(path, raw+".") })
}

func (s *paths) add(name string) { s.fields[strings.Join(append(s.prefix, name), ".")] = true }

func (s *paths) open(name string) {
	s.add(name)
	s.prefix = append(s.prefix, name)
}

func (s *paths) close()                   { s.prefix = s.prefix[:len(s.prefix)-1] }
func (s *paths) text(name, _ string)      { s.add(name) }
func (s *paths) flag(name string, _ bool) { s.add(name) }

func (s *paths) number(name string, _ int64)  { s.add(name) }
func (s *paths) ratio(name string, _ float64) { s.add(name) }

func (s *paths) raw(name, _ string) {
	s.add(name)
	s.raws = append(s.raws, strings.Join(append(s.prefix, name), "."))
}

// example returns an input of the point with nothing known, detail included.
func example(p Point) asked {
	price := Price{Input: -1, Output: -1}
	switch p {
	case PointAdmission:
		return &AdmissionInput{Detail: unknownDetail}
	case PointFailure:
		return &FailureInput{Detail: unknownDetail}
	case PointSubstitution:
		return &SubstitutionInput{
			Requested: Model{Price: price},
			Candidate: Candidate{Price: price, Evidence: NoEvidence},
			Detail:    unknownDetail,
		}
	default:
		return &ReplayInput{Detail: unknownDetail}
	}
}
