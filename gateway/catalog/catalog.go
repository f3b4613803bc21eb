package catalog

import "github.com/interlock-gateway/interlock/gateway/config"

// Catalog is the models and contracts of one configuration. It is immutable, and safe for
// concurrent use.
type Catalog struct {
	models    map[string]*Model
	contracts map[string]*Contract
}

// New makes the catalogue of a configuration: the built-in one, the file's models over it,
// and the aliases' contracts. What the file says of a model holds for its dated names too,
// unless the file describes those themselves.
func New(c *config.Config) *Catalog {
	cat := &Catalog{models: map[string]*Model{}, contracts: map[string]*Contract{}}
	for _, e := range builtin() {
		m := e.model()
		m.override(c.Models[e.Name])
		cat.models[e.Name] = &m
		for _, also := range e.Also {
			dated := m
			dated.Name = also
			dated.override(c.Models[also])
			cat.models[also] = &dated
		}
	}
	for name, described := range c.Models {
		if _, ok := cat.models[name]; !ok {
			m := &Model{Name: name, Base: name}
			m.override(described)
			cat.models[name] = m
		}
	}
	for name, a := range c.Aliases {
		cat.contracts[name] = contractOf(name, a)
	}
	return cat
}

// Model returns what is known of a model; nil where nothing is. A nil *Model may be asked
// everything.
func (c *Catalog) Model(name string) *Model { return c.models[name] }

// Contract returns an alias's contract; nil where the name is no alias.
func (c *Catalog) Contract(alias string) *Contract { return c.contracts[alias] }

// Names lists every model of which anything is known, in no order.
func (c *Catalog) Names() []string {
	names := make([]string, 0, len(c.models))
	for n := range c.models {
		names = append(names, n)
	}
	return names
}
