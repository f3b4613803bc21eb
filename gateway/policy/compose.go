package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
)

// Part is what one bundle contributes to a revision.
type Part struct {
	Bundle *Bundle
	Roots  []string // what it owns; of the default bundle: what is left to it
}

// share is a bundle's own share of a revision, parsed.
type share struct {
	bundle  *Bundle
	roots   []string
	modules map[string]*ast.Module // by the name that errors show
	docs    []document
}

// compose parses bundles that lie side by side. Each owns the roots of its manifest and
// nothing else, no root is owned twice, and the default bundle owns what is left: a package
// that no root covers, a table or the rows of one that no root covers.
func compose(bundles []*Bundle, caps *ast.Capabilities) ([]*share, error) {
	faults := disjoint(bundles)
	if err := faults.orNil(); err != nil {
		return nil, err
	}
	var parts []*share
	var owned []string
	builtin := false
	for _, b := range bundles {
		p, more := shareOf(b, caps)
		faults = append(faults, more...)
		parts = append(parts, p)
		owned = append(owned, b.roots...)
		builtin = builtin || b.source == Builtin()
	}
	if err := faults.orNil(); err != nil {
		return nil, err
	}
	if !builtin {
		p, err := leftOver(owned, caps)
		if err != nil {
			return nil, err
		}
		if len(p.roots) > 0 {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// disjoint refuses roots that two bundles own.
func disjoint(bundles []*Bundle) Errors {
	var faults Errors
	for i, a := range bundles {
		for _, b := range bundles[:i] {
			for _, mine := range a.roots {
				for _, theirs := range b.roots {
					if bundle.RootPathsOverlap(mine, theirs) {
						faults = append(faults, Fault{File: a.source.shown(manifestFile), Message: fmt.Sprintf(
							"the bundles %s and %s own the same: the root %q of the one and %q of the other overlap",
							b.source.name, a.source.name, theirs, mine)})
					}
				}
			}
		}
	}
	return faults
}

// shareOf parses one bundle and holds it to its roots.
func shareOf(b *Bundle, caps *ast.Capabilities) (*share, Errors) {
	p := &share{bundle: b, roots: b.roots}
	var faults, more Errors
	p.modules, faults = modulesOf(b, caps)
	p.docs, more = dataOf(b)
	faults = append(faults, more...)
	for _, shown := range slices.Sorted(maps.Keys(p.modules)) {
		if module := p.modules[shown]; !bundle.RootPathsContain(b.roots, packagePath(module)) {
			faults = append(faults, faultAt(module.Package.Location, fmt.Sprintf(
				"%s lies outside the manifest's roots %s", module.Package, strings.Join(b.roots, ", "))))
		}
	}
	for i := range p.docs {
		faults = append(faults, p.docs[i].outside(b.roots)...)
	}
	return p, faults
}

// defaultBundle is read once in a process.
var defaultBundle = sync.OnceValues(func() (*Bundle, error) { return Read(context.Background(), Builtin()) })

// leftOver returns what of the default bundle no root covers.
func leftOver(owned []string, caps *ast.Capabilities) (*share, error) {
	b, err := defaultBundle()
	if err != nil {
		return nil, err
	}
	p, faults := shareOf(b, caps)
	if err := faults.orNil(); err != nil {
		return nil, err
	}
	p.roots = nil
	maps.DeleteFunc(p.modules, func(_ string, module *ast.Module) bool {
		at := packagePath(module)
		if bundle.RootPathsContain(owned, at) {
			return true
		}
		p.roots = append(p.roots, at)
		return false
	})
	p.docs = slices.DeleteFunc(p.docs, func(doc document) bool {
		at := strings.Join(doc.at, "/")
		if bundle.RootPathsContain(owned, at) || !cut(doc.at, doc.value, owned) {
			return true
		}
		p.roots = append(p.roots, at)
		return false
	})
	slices.Sort(p.roots)
	p.roots = slices.Compact(p.roots)
	return p, nil
}

// cut takes what others own out of a document and reports whether anything is left.
func cut(at []string, value any, owned []string) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return true
	}
	had := len(fields)
	for name, inner := range fields {
		below := append(slices.Clone(at), name)
		if bundle.RootPathsContain(owned, strings.Join(below, "/")) || !cut(below, inner, owned) {
			delete(fields, name)
		}
	}
	return had == 0 || len(fields) > 0
}
