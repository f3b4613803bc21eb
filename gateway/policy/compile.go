package policy

import (
	"context"
	"errors"
	"maps"
	"path"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// query returns the point's entry point.
func (p Point) query() string { return "data.interlock." + p.String() + ".decision" }

func (p Point) ref() ast.Ref { return ast.MustParseRef(p.query()) }

// compiled is the bundles of a revision, which passed every check that needs no evaluation.
type compiled struct {
	parts    []*share
	data     *tree
	compiler *ast.Compiler
	store    storage.Store
	reach    [points]*reach
}

// compile parses, merges, compiles and checks bundles.
func compile(ctx context.Context, bundles []*Bundle, grants []string) (*compiled, error) {
	caps := capabilities(grants)
	parts, err := compose(bundles, caps)
	if err != nil {
		return nil, err
	}
	modules := map[string]*ast.Module{}
	data := &tree{root: map[string]any{}}
	var faults Errors
	for _, p := range parts {
		maps.Copy(modules, p.modules)
		for _, doc := range p.docs {
			if fault := data.add(doc); fault != nil {
				faults = append(faults, *fault)
			}
		}
	}
	if err := append(faults, data.check()...).orNil(); err != nil {
		return nil, err
	}

	rules, err := rulesOf(modules, caps, grants)
	if err != nil {
		return nil, err
	}
	c := &compiled{parts: parts, data: data, compiler: rules.compiler}
	c.store = inmem.NewFromObjectWithOpts(data.root, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
	if err := c.pathConflicts(ctx); err != nil {
		return nil, err
	}
	faults = nil
	for p, r := range rules.reach {
		own := *r // what is found in it with this data is this revision's
		c.reach[p] = &own
		faults = append(faults, r.lost(Point(p), c.compiler, c.data.root)...)
	}
	return c, faults.orNil()
}

// rulesOf compiles modules and checks what can be known of them without data.
func rulesOf(modules map[string]*ast.Module, caps *ast.Capabilities, grants []string) (*ruleSet, error) {
	if known := knownRules(modules, grants); known != nil {
		return known, nil
	}
	set := &ruleSet{modules: modules, grants: grantsText(grants)}
	set.compiler = ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true).
		WithCapabilities(caps).
		WithSchemas(inputSchemas()).
		WithEnablePrintStatements(false).
		SetErrorLimit(0)
	compiling.Lock()
	set.compiler.Compile(modules)
	compiling.Unlock()
	if set.compiler.Failed() {
		return nil, faultsOf(set.compiler.Errors).orNil()
	}
	if err := set.statics(); err != nil {
		return nil, err
	}
	rememberRules(set)
	return set, nil
}

func (c *compiled) pathConflicts(ctx context.Context) error {
	txn, err := c.store.NewTransaction(ctx)
	if err != nil {
		return err
	}
	defer c.store.Abort(ctx, txn)
	return faultsOf(ast.CheckPathConflicts(c.compiler, storage.NonEmpty(ctx, c.store, txn))).orNil()
}

// statics checks what can be known of the rules without evaluating them.
func (s *ruleSet) statics() error {
	var faults Errors
	for p := range points {
		r, fault := reachOf(s.compiler, p)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		s.reach[p] = r
		faults = append(faults, r.foreign(p)...)
	}
	for _, module := range s.compiler.Modules {
		faults = append(faults, checkWords(s.compiler, module)...)
	}
	return faults.orNil()
}

// modulesOf parses a bundle's Rego, but for its tests. The modules must not be changed.
func modulesOf(b *Bundle, caps *ast.Capabilities) (map[string]*ast.Module, Errors) {
	options := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: caps}
	modules := map[string]*ast.Module{}
	var faults Errors
	for _, file := range b.list {
		if path.Ext(file.path) != ".rego" {
			continue
		}
		shown := b.source.shown(file.path)
		module, err := parsed(shown, file.text, options)
		var several ast.Errors
		switch {
		case errors.As(err, &several):
			faults = append(faults, faultsOf(several)...)
		case err != nil:
			faults = append(faults, Fault{File: shown, Message: err.Error()})
		case module != nil: // it may be nothing but blanks
			modules[shown] = module
		}
	}
	return modules, faults
}

// packagePath returns a module's place among the roots: "interlock/replay".
func packagePath(module *ast.Module) string {
	at, err := storage.NewPathForRef(module.Package.Path)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(at.String(), "/")
}

func faultsOf(errs ast.Errors) Errors {
	faults := make(Errors, 0, len(errs))
	for _, e := range errs {
		message := e.Code + ": " + e.Message
		if e.Details != nil {
			for _, line := range e.Details.Lines() {
				message += "\n\t" + line
			}
		}
		faults = append(faults, faultAt(e.Location, message))
	}
	return faults
}

func faultAt(at *ast.Location, message string) Fault {
	f := Fault{Message: message}
	if at != nil {
		f.File, f.Line, f.Column = at.File, at.Row, at.Col
	}
	return f
}

// compiling lets one bundle compile at a time: the library's type checker writes to types that
// all compilers of a process share.
var compiling sync.Mutex
