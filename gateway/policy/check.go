package policy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Check finds everything that Load would refuse bundles for, and all of it at once: where one
// thing is wrong the others are looked at all the same, as far as they can be. Tests beside the
// bundles' rules must compile too. An error is none of the bundles: a file that cannot be read.
func Check(ctx context.Context, sources []Source, opts Options) (Errors, error) {
	var bundles []*Bundle
	var faults Errors
	for _, src := range sources {
		b, err := Read(ctx, src)
		if found := Errors(nil); errors.As(err, &found) {
			faults = append(faults, found...)
		} else if err != nil {
			return nil, err
		} else {
			bundles = append(bundles, b)
		}
	}
	w := newWorkspace(opts.Grants)
	more, err := w.putTogether(ctx, bundles, true)
	if err != nil {
		return nil, err
	}
	faults = append(faults, more...)
	faults = append(faults, w.survey(ctx, len(faults) > 0)...)
	if len(faults) > 0 {
		return faults.bounded(), nil
	}
	_, err = build(ctx, bundles, opts)
	if found := Errors(nil); errors.As(err, &found) {
		return found.bounded(), nil
	}
	return nil, err
}

// everyFault returns all faults of bundles that are refused for some of them, those included.
func everyFault(ctx context.Context, bundles []*Bundle, opts Options, some Errors) Errors {
	w := newWorkspace(opts.Grants)
	faults, err := w.putTogether(ctx, bundles, false)
	if err != nil {
		return some
	}
	return append(append(faults, w.survey(ctx, len(faults) > 0)...), some...).bounded()
}

// Unparsed finds the Rego of bundles that does not parse. It is what can be said of some bundles
// of a set whose others are not at hand.
func Unparsed(bundles []*Bundle, opts Options) Errors {
	var all Errors
	for _, b := range bundles {
		_, faults := modulesOf(b, capabilities(opts.Grants))
		all = append(all, faults...)
	}
	return all.bounded()
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

func newWorkspace(grants []string) *workspace {
	return &workspace{
		caps: capabilities(grants), modules: map[string]*ast.Module{}, own: map[string]bool{},
		tests: map[string]*ast.Module{}, data: &tree{root: map[string]any{}},
	}
}

// putTogether parses bundles, and the tests beside their rules, and lays them side by side with
// what of the default one they leave to it. A bundle whose roots another one owns is left out.
func (w *workspace) putTogether(ctx context.Context, bundles []*Bundle, tests bool) (Errors, error) {
	var faults Errors
	var owned []string
	whole := false
	for _, b := range bundles {
		if overlap := disjoint(append(slices.Clone(w.bundles), b)); len(overlap) > 0 {
			faults = append(faults, overlap...)
			continue
		}
		w.bundles = append(w.bundles, b)
		p, more := shareOf(b, w.caps)
		faults = append(append(faults, more...), w.add(p)...)
		owned = append(owned, b.roots...)
		whole = whole || b.source == Builtin()
		for name := range p.modules {
			w.own[name] = true
		}
		if !tests {
			continue
		}
		more, err := w.addTests(ctx, b.source)
		if err != nil {
			return nil, err
		}
		faults = append(faults, more...)
	}
	if !whole {
		p, err := leftOver(owned, w.caps)
		if err != nil {
			return nil, err
		}
		faults = append(faults, w.add(p)...)
	}
	return faults, nil
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

// compiler returns what compiles the rules as a gateway does.
func (w *workspace) compiler() *ast.Compiler {
	return ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true).
		WithCapabilities(w.caps).
		WithSchemas(inputSchemas())
}

// testCompiler returns what compiles the rules and their tests together. Tests may print.
func (w *workspace) testCompiler() *ast.Compiler {
	return ast.NewCompiler().WithDefaultRegoVersion(ast.RegoV1).WithStrict(true).WithCapabilities(w.caps).
		WithEnablePrintStatements(true).SetErrorLimit(0)
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
