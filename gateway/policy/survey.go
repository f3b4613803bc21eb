package policy

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// OPA's compiler ends at the first of its stages that finds something: an unknown function hides
// every wrong type. A survey takes a rule in which something was found out, puts one in its
// place of which nothing is known, and compiles again, until nothing more is found.

// maxRounds bounds how often a survey compiles.
const maxRounds = 24

// survey is what is found in one set of modules. Its modules are changed as it goes on.
type survey struct {
	modules map[string]*ast.Module
	begin   func() *ast.Compiler
	each    func(*ast.Compiler) // is shown what was compiled, as far as it came

	faults   Errors
	last     *ast.Compiler      // of the last round; nil before
	stubs    map[*ast.Rule]bool // rules that stand for others
	thinned  map[string]bool    // modules with such rules: their imports may not be used any more
	gone     map[string]bool    // names of rules and imports that are no longer there
	unparsed map[string]bool    // packages of which a file could not be read: what is not there may be in it
	broken   bool               // some file could not be read
}

// run compiles until nothing more is found.
func (s *survey) run() {
	s.stubs, s.thinned, s.gone = map[*ast.Rule]bool{}, map[string]bool{}, map[string]bool{}
	for range maxRounds {
		modules := make(map[string]*ast.Module, len(s.modules))
		for name, module := range s.modules {
			modules[name] = module.Copy()
		}
		s.last = s.begin().SetErrorLimit(0)
		compiling.Lock()
		s.last.Compile(modules)
		compiling.Unlock()
		if s.each != nil {
			s.each(s.last)
		}
		found := false
		for _, e := range s.last.Errors {
			if !s.follows(e) {
				s.faults = append(s.faults, faultsOf(ast.Errors{e})...)
			}
			found = s.hush(e) || found
		}
		if !found {
			return
		}
	}
}

var (
	unsafeVar   = regexp.MustCompile(`^var (\S+) is unsafe`)
	unknownFunc = regexp.MustCompile(`^undefined function data\.(\S+)`)
)

// follows reports whether an error may only be a consequence of what was found before it.
func (s *survey) follows(e *ast.Error) bool {
	if e.Location == nil {
		return false
	}
	if strings.HasPrefix(e.Message, "import ") && strings.HasSuffix(e.Message, " unused") {
		return s.thinned[e.Location.File]
	}
	if m := unsafeVar.FindStringSubmatch(e.Message); m != nil {
		module := s.modules[e.Location.File]
		return s.gone[m[1]] || module != nil && s.unparsed[module.Package.Path.String()]
	}
	if m := unknownFunc.FindStringSubmatch(e.Message); m != nil {
		return s.broken || s.gone[m[1][strings.LastIndexByte(m[1], '.')+1:]]
	}
	return false
}

// hush changes the module so that the error, or one like it, does not come again. It reports
// whether there was something to change.
func (s *survey) hush(e *ast.Error) bool {
	if e.Location == nil || s.modules[e.Location.File] == nil {
		return false
	}
	name, row := e.Location.File, e.Location.Row
	module := s.modules[name]
	for i, imported := range module.Imports {
		if imported.Location != nil && imported.Location.Row == row {
			s.gone[string(imported.Name())] = true
			module.Imports = slices.Delete(module.Imports, i, i+1)
			return true
		}
	}
	at := 0 // the line where the rule with the error begins
	for _, rule := range module.Rules {
		if rule.Location != nil && rule.Location.Row <= row {
			at = max(at, rule.Location.Row)
		}
	}
	if at == 0 {
		for _, rule := range module.Rules {
			s.gone[string(rule.Head.Name)] = true
		}
		delete(s.modules, name)
		s.broken = true
		return true
	}
	s.thinned[name] = true
	module.Rules = slices.DeleteFunc(module.Rules, func(rule *ast.Rule) bool {
		if rule.Location == nil || rule.Location.Row != at {
			return false
		}
		if s.stubs[rule] || rule.Default {
			s.gone[string(rule.Head.Name)] = true
			s.broken = true
			return true
		}
		stub(rule)
		s.stubs[rule] = true
		return false
	})
	return true
}

// stub leaves of a rule its name, its arguments and its place. What it gives can be anything.
func stub(rule *ast.Rule) {
	// data.unknown[t], or as it is: of data that is not there everything can be.
	unknown := func(below ...*ast.Term) *ast.Term {
		ref := append(ast.Ref{ast.DefaultRootDocument, ast.StringTerm("unknown").SetLocation(rule.Location)}, below...)
		return ast.NewTerm(ref).SetLocation(rule.Location)
	}
	head := rule.Head
	if head.RuleKind() == ast.MultiValue {
		head.Key = unknown()
	}
	if head.Value != nil {
		switch head.Value.Value.(type) {
		case ast.Null, ast.Boolean, ast.Number, ast.String:
		default:
			head.Value = unknown()
		}
	}
	vars := ast.NewVarSet()
	note := func(v ast.Var) bool {
		vars.Add(v)
		return false
	}
	for _, arg := range head.Args {
		ast.WalkVars(arg, note)
	}
	for _, term := range head.Reference[min(1, len(head.Reference)):] {
		ast.WalkVars(term, note)
	}
	var body ast.Body
	for _, v := range vars.Sorted() {
		if v != ast.DefaultRootDocument.Value {
			body.Append(ast.NewExpr(unknown(ast.VarTerm(string(v)).SetLocation(rule.Location))).SetLocation(rule.Location))
		}
	}
	if len(body) == 0 {
		body.Append(ast.NewExpr(ast.BooleanTerm(true).SetLocation(rule.Location)).SetLocation(rule.Location))
	}
	rule.Body, rule.Else = body, nil
}

// packageLine finds the package of a file that does not parse.
var packageLine = regexp.MustCompile(`(?m)^\s*package\s+([\w.]+)`)

// unparsed returns the packages of the Rego files that are in none of the modules.
func (w *workspace) unparsed(modules map[string]*ast.Module) map[string]bool {
	all := map[string]bool{}
	for _, b := range w.bundles {
		for _, f := range b.list {
			if m := packageLine.FindSubmatch(f.text); strings.HasSuffix(f.path, ".rego") && modules[b.source.shown(f.path)] == nil && m != nil {
				all["data."+string(m[1])] = true
			}
		}
	}
	return all
}

// survey finds everything that is wrong with the workspace and needs no evaluation, beside what
// was found when it was put together. broken: a part of it could not be read, and what is not
// there may be in it.
func (w *workspace) survey(ctx context.Context, broken bool) Errors {
	var faults, foreign Errors
	rules := &survey{
		modules: copied(w.modules), begin: w.compiler, unparsed: w.unparsed(w.modules), broken: broken,
	}
	rules.each = func(c *ast.Compiler) {
		if c.Graph == nil { // it did not come as far as to know what is what
			return
		}
		for _, module := range c.Modules {
			faults = append(faults, checkWords(c, module)...)
		}
		for p := range points {
			r, fault := reachOf(c, p)
			switch {
			case fault == nil:
				foreign = append(foreign, r.foreign(p)...)
				if !rules.broken {
					faults = append(faults, r.lost(p, c, w.data.root)...)
				}
			case !rules.broken || fault.File != "":
				faults = append(faults, *fault)
			}
		}
	}
	rules.run()
	for _, f := range foreign {
		// The compiler says so of a field that no point's input has.
		if !slices.ContainsFunc(rules.faults, func(g Fault) bool {
			return f.File == g.File && f.Line == g.Line && strings.Contains(g.Message, "undefined ref: input.")
		}) {
			faults = append(faults, f)
		}
	}
	faults = append(faults, rules.faults...)
	for _, f := range w.data.check() {
		if !broken || f.File != "" {
			faults = append(faults, f)
		}
	}
	if !rules.last.Failed() {
		c := &compiled{data: w.data, compiler: rules.last}
		c.store = inmem.NewFromObjectWithOpts(w.data.root, inmem.OptRoundTripOnWrite(true))
		var found Errors
		if err := c.pathConflicts(ctx); errors.As(err, &found) {
			faults = append(faults, found...)
		}
	}
	return append(faults, w.surveyTests(rules)...)
}

// surveyTests finds what is wrong with the tests beside rules of which some may be unknown.
func (w *workspace) surveyTests(rules *survey) Errors {
	if len(w.tests) == 0 {
		return nil
	}
	tests := &survey{modules: copied(w.tests), unparsed: rules.unparsed, broken: rules.broken}
	maps.Copy(tests.modules, rules.modules)
	tests.begin = w.testCompiler
	tests.run()
	return slices.DeleteFunc(tests.faults, func(f Fault) bool { return w.tests[f.File] == nil })
}

func copied(modules map[string]*ast.Module) map[string]*ast.Module {
	all := make(map[string]*ast.Module, len(modules))
	for name, module := range modules {
		all[name] = module.Copy()
	}
	return all
}
