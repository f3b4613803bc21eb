package flow

import (
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// Alias is a public model name with a contract, in one generation.
type Alias struct {
	contract    *catalog.Contract
	buffered    bool
	requested   policy.Model
	asPolicy    policy.Alias
	substitutes []substitute
	guards      []guard
}

// substitute is one model listed in an alias's place.
type substitute struct {
	model  string
	priced bool             // under its ceiling
	offer  policy.Candidate // with its window against the requested model's
}

// meets reports whether a model in a region satisfies the alias's whole contract.
func (a *Alias) meets(m *catalog.Model, region string) bool {
	ok, _ := m.Satisfies(a.contract.Demand)
	return ok && a.contract.AllowsRegion(region)
}
