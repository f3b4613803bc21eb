package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// refused reports whether a bundle may not call that builtin function unless the operator
// grants it: it reaches the network, the clock, chance, the process or the compiler.
func refused(name string) bool {
	switch name {
	case "http.send", "opa.runtime", "rego.parse_module", "trace", "time.now_ns":
		return true
	}
	return strings.HasPrefix(name, "net.") || strings.HasPrefix(name, "rand.")
}

// capabilities returns what bundles may use: this OPA without what is refused and not granted.
func capabilities(grants []string) *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return refused(b.Name) && !slices.Contains(grants, b.Name)
	})
	c.AllowNet = []string{} // not nil: no host at all, for schemas and the functions that take one
	return c
}

// steady reports whether a builtin function gives the same for the same: one that is not
// known does not.
func steady(name string) bool {
	b, ok := ast.BuiltinMap[name]
	return ok && !b.IsNondeterministic()
}
