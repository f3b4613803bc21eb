package policy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// Check finds everything that Load would refuse bundles for, and all of it at once: where one
// thing is wrong the others are looked at all the same, as far as they can be. Tests beside the
// bundles' rules must compile too. An error is none of the bundles: a file that cannot be read.
func Check(ctx context.Context, sources []Source, opts Options) (Errors, error) {
	w, faults, err := workspaceOf(ctx, sources, opts.Grants)
	if err != nil || w == nil {
		return faults.sorted(), err
	}
	c := w.compile(true)
	broken := len(faults) > 0 // what is missing may only not have been read
	for _, e := range faultsOf(c.compiler.Errors) {
		if !broken || !strings.Contains(e.Message, "undefined function data.") {
			faults = append(faults, e)
		}
	}
	faults = append(faults, w.faults(ctx, c, broken)...)
	if len(faults) > 0 {
		return faults.sorted(), nil
	}
	if _, err := Build(ctx, w.bundles, opts); err != nil {
		if found := Errors(nil); errors.As(err, &found) {
			faults = append(faults, found...)
		} else {
			return nil, err
		}
	}
	return append(faults, w.testFaults()...).sorted(), nil
}

// workspace is bundles side by side, their tests, and what of the default bundle they leave
// to it, parsed as far as possible.
type workspace struct {
	caps    *ast.Capabilities
	bundles []*Bundle
	modules map[string]*ast.Module
	own     map[string]bool // the modules that are none of the default bundle's share
	tests   map[string]*ast.Module
	data    *tree
}

// workspaceOf reads and parses. It is nil where the bundles cannot be put together at all.
func workspaceOf(ctx context.Context, sources []Source, grants []string) (*workspace, Errors, error) {
	w := &workspace{
		caps: capabilities(grants), modules: map[string]*ast.Module{}, own: map[string]bool{},
		tests: map[string]*ast.Module{}, data: &tree{root: map[string]any{}},
	}
	var faults Errors
	for _, src := range sources {
		b, err := Read(ctx, src)
		if found := Errors(nil); errors.As(err, &found) {
			faults = append(faults, found...)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		w.bundles = append(w.bundles, b)
	}
	if len(faults) > 0 {
		return nil, faults, nil
	}
	if faults = disjoint(w.bundles); len(faults) > 0 {
		return nil, faults, nil
	}
	var owned []string
	whole := false
	for _, b := range w.bundles {
		p, more := shareOf(b, w.caps)
		faults = append(append(faults, more...), w.add(p)...)
		owned = append(owned, b.roots...)
		whole = whole || b.source == Builtin()
		for name := range p.modules {
			w.own[name] = true
		}
		more, err := w.addTests(ctx, b.source)
		if err != nil {
			return nil, nil, err
		}
		faults = append(faults, more...)
	}
	if !whole {
		p, err := leftOver(owned, w.caps)
		if err != nil {
			return nil, nil, err
		}
		faults = append(faults, w.add(p)...)
	}
	return w, faults, nil
}

func (w *workspace) add(p *share) Errors {
	var faults Errors
	maps.Copy(w.modules, p.modules)
	for _, doc := range p.docs {
		if fault := w.data.add(doc); fault != nil {
			faults = append(faults, *fault)
		}
	}
	return faults
}

// addTests parses the tests that lie beside a bundle's rules.
func (w *workspace) addTests(ctx context.Context, src Source) (Errors, error) {
	if src.isRemote() {
		return nil, nil
	}
	c := &collector{all: true}
	if err := c.source(ctx, src); err != nil {
		return nil, err
	}
	tests := &Bundle{source: src, list: slices.DeleteFunc(c.list, func(f file) bool {
		return !strings.HasSuffix(f.path, "_test.rego") || strings.HasPrefix(f.path, "schemas/")
	})}
	modules, faults := modulesOf(tests, w.caps)
	maps.Copy(w.tests, modules)
	return faults, nil
}

// compile compiles the rules. The compiler's errors are all that there are.
func (w *workspace) compile(strict bool) *compiled {
	compiler := ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(strict).
		WithCapabilities(w.caps).
		WithSchemas(inputSchemas()).
		SetErrorLimit(0)
	modules := make(map[string]*ast.Module, len(w.modules))
	for name, module := range w.modules {
		modules[name] = module.Copy()
	}
	compiling.Lock()
	compiler.Compile(modules)
	compiling.Unlock()
	return &compiled{data: w.data, compiler: compiler}
}

// faults checks what can be known of the data and the rules without evaluating them. broken:
// what is not there may be in a file that could not be read.
func (w *workspace) faults(ctx context.Context, c *compiled, broken bool) Errors {
	var faults Errors
	for _, f := range w.data.check() {
		if !broken || f.File != "" {
			faults = append(faults, f)
		}
	}
	if !typedOnly(c.compiler) {
		return faults
	}
	for _, module := range c.compiler.Modules {
		faults = append(faults, checkWords(c.compiler, module)...)
	}
	for p := range points {
		r, fault := reachOf(c.compiler, p)
		if fault != nil {
			if !broken {
				faults = append(faults, *fault)
			}
			continue
		}
		faults = append(faults, r.foreign(p)...)
		if !broken {
			faults = append(faults, r.lost(p, c.compiler, c.data.root)...)
		}
	}
	if !c.compiler.Failed() {
		c.store = inmem.NewFromObjectWithOpts(w.data.root, inmem.OptRoundTripOnWrite(true))
		var found Errors
		if err := c.pathConflicts(ctx); errors.As(err, &found) {
			faults = append(faults, found...)
		}
	}
	return faults
}

// typedOnly reports whether the compiler came as far as the types: then the rules are all
// resolved, and more can be found in them.
func typedOnly(compiler *ast.Compiler) bool {
	return compiler.Graph != nil && !slices.ContainsFunc(compiler.Errors, func(e *ast.Error) bool { return e.Code != ast.TypeErr })
}

// testFaults compiles the tests against rules that hold.
func (w *workspace) testFaults() Errors {
	compiler, modules := w.testCompiler()
	compiling.Lock()
	compiler.Compile(modules)
	compiling.Unlock()
	return faultsOf(compiler.Errors)
}

// testCompiler returns what compiles the rules and their tests together, and those. Tests may
// print.
func (w *workspace) testCompiler() (*ast.Compiler, map[string]*ast.Module) {
	modules := make(map[string]*ast.Module, len(w.modules)+len(w.tests))
	for _, some := range []map[string]*ast.Module{w.modules, w.tests} {
		for name, module := range some {
			modules[name] = module.Copy()
		}
	}
	return ast.NewCompiler().WithDefaultRegoVersion(ast.RegoV1).WithStrict(true).WithCapabilities(w.caps).
		WithEnablePrintStatements(true).SetErrorLimit(0), modules
}

func inputSchemas() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	schema, err := decodeJSON(schemaText(inputSchema))
	if err != nil {
		panic("policy: input schema: " + err.Error()) // embedded: a build without it is broken
	}
	set.Put(ast.SchemaRootRef, schema)
	return set
}
