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

	schema, err := decodeJSON(schemaText(inputSchema))
	if err != nil {
		return nil, err
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	compiler := ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true).
		WithCapabilities(caps).
		WithSchemas(set).
		WithEnablePrintStatements(false).
		SetErrorLimit(0)
	compiling.Lock()
	compiler.Compile(modules)
	compiling.Unlock()
	if compiler.Failed() {
		return nil, faultsOf(compiler.Errors).orNil()
	}

	c := &compiled{parts: parts, data: data, compiler: compiler}
	c.store = inmem.NewFromObjectWithOpts(data.root, inmem.OptRoundTripOnWrite(false), inmem.OptReturnASTValuesOnRead(true))
	if err := c.pathConflicts(ctx); err != nil {
		return nil, err
	}
	return c, c.statics()
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
func (c *compiled) statics() error {
	var faults Errors
	for p := range points {
		r, fault := reachOf(c.compiler, p)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		c.reach[p] = r
		faults = append(faults, r.foreign(p)...)
		faults = append(faults, r.lost(p, c.compiler, c.data.root)...)
	}
	for _, module := range c.compiler.Modules {
		faults = append(faults, checkWords(c.compiler, module)...)
	}
	return faults.orNil()
}

// modulesOf parses a bundle's Rego, but for its tests.
func modulesOf(b *Bundle, caps *ast.Capabilities) (map[string]*ast.Module, Errors) {
	options := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: caps}
	modules := map[string]*ast.Module{}
	var faults Errors
	for _, file := range b.list {
		if path.Ext(file.path) != ".rego" {
			continue
		}
		shown := b.source.shown(file.path)
		module, err := ast.ParseModuleWithOpts(shown, string(file.text), options)
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
