package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// OPA's type checker knows that input.failure.phase is a string, not which ones there are. A
// misspelt word would make a rule that never holds, and nobody would see it. checkWords holds
// every constant that a rule compares with an input of few words to those words:
//
//	input.failure.phase == "befor_headers"     also !=, through a local variable, in lists
//	input.failure.class in {"netwrok"}         sets, arrays and objects' values
//	{"netwrok": true}[input.failure.class]     and names of tables written in the rules
func checkWords(compiler *ast.Compiler, module *ast.Module) Errors {
	var faults Errors
	ast.WalkRules(module, func(rule *ast.Rule) bool {
		w := &wordChecker{compiler: compiler, inputs: map[ast.Var]string{}, constants: map[ast.Var]*ast.Term{}}
		// Twice: a variable may be used before the expression that gives its value.
		ast.WalkExprs(rule, w.assign)
		ast.WalkExprs(rule, w.compare)
		ast.WalkRefs(rule, func(ref ast.Ref) bool {
			w.lookUp(ref)
			return false
		})
		faults = append(faults, w.faults...)
		return true // else-branches were walked with their rule
	})
	return faults
}

type wordChecker struct {
	compiler  *ast.Compiler
	inputs    map[ast.Var]string    // variables that stand for an input path
	constants map[ast.Var]*ast.Term // … and for a collection written in the rule
	faults    Errors
}

// assign notes what local variables stand for.
func (w *wordChecker) assign(e *ast.Expr) bool {
	if !isOperator(e, ast.Equality.Name, ast.Assign.Name) {
		return false
	}
	for _, side := range [][2]int{{0, 1}, {1, 0}} {
		v, isVar := e.Operand(side[0]).Value.(ast.Var)
		if !isVar {
			continue
		}
		other := e.Operand(side[1])
		if ref, isRef := other.Value.(ast.Ref); isRef {
			if path, ok := inputPath(ref); ok && path != "" {
				w.inputs[v] = path
			}
		} else if collection(other) {
			w.constants[v] = other
		}
	}
	return false
}

// compare checks one comparison or membership.
func (w *wordChecker) compare(e *ast.Expr) bool {
	switch {
	case isOperator(e, ast.Equality.Name, ast.Assign.Name, ast.Equal.Name, ast.NotEqual.Name):
		a, b := e.Operand(0), e.Operand(1)
		if _, isVar := a.Value.(ast.Var); isVar && isOperator(e, ast.Equality.Name, ast.Assign.Name) && w.inputOf(b) != "" {
			return false // the assignment itself
		}
		w.check(a, b)
		w.check(b, a)
	case isOperator(e, ast.Member.Name):
		if members := w.collectionOf(e.Operand(1)); members != nil {
			eachMember(members, func(t *ast.Term) { w.check(e.Operand(0), t) })
		}
		w.check(e.Operand(1), e.Operand(0)) // "image" in input.request.modalities
	case isOperator(e, ast.ObjectGet.Name):
		if table := w.collectionOf(e.Operand(0)); table != nil {
			w.names(table, e.Operand(1))
		}
	}
	return false
}

// lookUp checks the names of a table that is written in the rules and indexed by an input.
func (w *wordChecker) lookUp(ref ast.Ref) {
	if len(ref) < 2 {
		return
	}
	if head, isVar := ref[0].Value.(ast.Var); isVar {
		if table := w.constants[head]; table != nil {
			w.names(table, ref[1])
			return
		}
	}
	for i := 1; i < len(ref); i++ {
		if w.inputOf(ref[i]) == "" {
			continue
		}
		if table := w.ruleTable(ref[:i]); table != nil {
			w.names(table, ref[i])
		}
	}
}

// ruleTable returns the collection that a rule without conditions is.
func (w *wordChecker) ruleTable(ref ast.Ref) *ast.Term {
	if !ref.HasPrefix(ast.DefaultRootRef) || !ref.IsGround() {
		return nil
	}
	rules := w.compiler.GetRulesExact(ref)
	if len(rules) != 1 || rules[0].Head.Value == nil || !collection(rules[0].Head.Value) {
		return nil
	}
	return rules[0].Head.Value
}

func (w *wordChecker) collectionOf(t *ast.Term) *ast.Term {
	switch v := t.Value.(type) {
	case ast.Var:
		return w.constants[v]
	case ast.Ref:
		return w.ruleTable(v)
	}
	if collection(t) {
		return t
	}
	return nil
}

// inputOf returns the input path that a term stands for, or "".
func (w *wordChecker) inputOf(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Var:
		return w.inputs[v]
	case ast.Ref:
		path, _ := inputPath(v)
		return path
	}
	return ""
}

// names checks what indexes a table against the table's own names.
func (w *wordChecker) names(table, index *ast.Term) {
	switch v := table.Value.(type) {
	case ast.Object:
		v.Foreach(func(name, _ *ast.Term) { w.check(index, name) })
	case ast.Set:
		v.Foreach(func(name *ast.Term) { w.check(index, name) })
	}
}

// check holds a constant to the words of the input that it is compared with.
func (w *wordChecker) check(input, constant *ast.Term) {
	word, isString := constant.Value.(ast.String)
	if !isString {
		return
	}
	path := w.inputOf(input)
	words, few := enums()[path]
	if !few || slices.Contains(words, string(word)) {
		return
	}
	at := constant.Location
	if at == nil {
		at = input.Location
	}
	w.faults = append(w.faults, faultAt(at, fmt.Sprintf(
		"input.%s is never %q; it is one of %s", path, string(word), strings.Join(words, ", "))))
}

func isOperator(e *ast.Expr, names ...string) bool {
	if !e.IsCall() || len(e.Operands()) < 2 {
		return false
	}
	return slices.Contains(names, e.Operator().String())
}

func collection(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.Set, ast.Object, *ast.Array:
		return true
	}
	return false
}

// eachMember visits what `in` looks at: members, and an object's values.
func eachMember(collection *ast.Term, visit func(*ast.Term)) {
	switch v := collection.Value.(type) {
	case ast.Set:
		v.Foreach(visit)
	case *ast.Array:
		v.Foreach(visit)
	case ast.Object:
		v.Foreach(func(_, value *ast.Term) { visit(value) })
	}
}
