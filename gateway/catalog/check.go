package catalog

import (
	"fmt"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// Load reads a configuration file, makes its catalogue, and checks the one against the other.
// The catalogue is nil where the file has errors.
func Load(path string, env config.Env) (*Catalog, *config.Result) {
	r := config.Load(path, env)
	if r.Found == nil {
		return nil, r
	}
	c := New(r.Found)
	Check(c, r)
	if r.Err() != nil {
		return nil, r
	}
	return c, r
}

// Check adds to a result what only the catalogue can tell: an alias named like one of its
// models, and models that can never answer for an alias because of what they lack or cost.
func Check(c *Catalog, r *config.Result) {
	if r.Found == nil {
		return
	}
	for name, a := range r.Found.Aliases {
		path := config.Join("aliases", name)
		faulty := r.Faulty(path)
		if m := c.models[name]; m != nil && m.Maker != "" {
			r.Fail(path, "an alias may not be named like a model: the built-in catalogue has one of that name")
		}
		if faulty || r.Faulty("models") {
			continue // of what stands in for them nothing can be said
		}
		contract := c.contracts[name]
		if ok, missing := c.Model(a.Model).Satisfies(contract.Demand); !ok {
			r.Warn(path+".model", "can never answer: it lacks what the alias requires: "+strings.Join(missing, ", "))
		}
		if !a.CrossModelFallbackAllowed {
			continue // said already
		}
		for i, s := range a.Substitutes {
			place := fmt.Sprintf("%s.substitutes[%d]", path, i)
			m := c.Model(s.Model)
			if ok, missing := m.Satisfies(contract.Demand); !ok {
				r.Warn(place+".model", "can never be approved: it lacks what the alias requires: "+strings.Join(missing, ", "))
			}
			if ok, why := m.Within(s.PriceCeiling); !ok {
				r.Warn(place+".price_ceiling", "it can never be approved: "+why)
			}
		}
	}
}
