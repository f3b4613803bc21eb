package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// looked is what rules do with one input whose words are many: the names that they look up in
// tables of the data, or free, where they do anything else with it.
type looked struct {
	names []string
	free  bool
}

// looksUp finds out what a point's rules do with an input. A table that has no such name gives
// the same for every word, so that a bundle need not be probed with each.
func (r *reach) looksUp(path string, compiler *ast.Compiler, data map[string]any) looked {
	var l looked
	for _, rule := range r.rules {
		l.rule(rule, path, compiler, data)
	}
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	return l
}

func (l *looked) rule(rule *ast.Rule, path string, compiler *ast.Compiler, data map[string]any) {
	locals := map[ast.Var]bool{} // variables that stand for the input
	seen, harmless := 0, 0       // its places, and those that only pass it on or look it up
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if !isOperator(e, ast.Equality.Name, ast.Assign.Name) {
			return false
		}
		for _, side := range [][2]int{{0, 1}, {1, 0}} {
			v, isVar := e.Operand(side[0]).Value.(ast.Var)
			if isVar && meets(e.Operand(side[1]), path) == whole {
				locals[v] = true
				harmless += 2
			}
		}
		return false
	})
	stands := func(t *ast.Term) bool {
		v, isVar := t.Value.(ast.Var)
		return isVar && locals[v] || meets(t, path) == whole
	}
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		for i := 1; i < len(ref); i++ {
			if !stands(ref[i]) {
				continue
			}
			if table, ok := tableAt(ref[:i], compiler, data); ok {
				harmless++
				for name := range table {
					l.names = append(l.names, name)
				}
			}
		}
		return false
	})
	ast.NewGenericVisitor(func(x any) bool {
		if t, ok := x.(*ast.Term); ok && (stands(t) || meets(t, path) == part) {
			seen++
		}
		return false
	}).Walk(rule)
	l.free = l.free || seen > harmless
}

type meeting int

const (
	apart meeting = iota
	part          // the term is something around the input, or in it
	whole         // it is the input
)

func meets(t *ast.Term, path string) meeting {
	ref, isRef := t.Value.(ast.Ref)
	if !isRef {
		return apart
	}
	read, isInput := inputPath(ref)
	switch {
	case !isInput:
		return apart
	case read == path:
		return whole
	case read == "", strings.HasPrefix(path, read+"."), strings.HasPrefix(read, path+"."):
		return part
	default:
		return apart
	}
}

// tableAt returns the object that lies at a data ref without unknowns. A table that is not
// there is an empty one; what a rule gives is none.
func tableAt(ref ast.Ref, compiler *ast.Compiler, data map[string]any) (map[string]any, bool) {
	if len(ref) < 3 || !ref[0].Equal(ast.DefaultRootDocument) || !ref.IsGround() || len(compiler.GetRules(ref)) > 0 {
		return nil, false
	}
	var v any = data
	for _, term := range ref[1:] {
		name, isString := term.Value.(ast.String)
		if !isString {
			return nil, false
		}
		v = lookUp(v, string(name))
	}
	table, _ := v.(map[string]any)
	return table, v == nil || table != nil
}
