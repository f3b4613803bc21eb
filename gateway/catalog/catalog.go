package catalog

import (
	"cmp"
	"slices"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// Catalog is the models and contracts of one configuration. It is immutable, and safe for
// concurrent use.
type Catalog struct {
	config    *config.Config
	models    map[string]*Model
	contracts map[string]*Contract
}

// New makes the catalogue of a configuration: the built-in one, the file's models over it,
// and the aliases' contracts. What the file says of a model holds for its dated names too,
// unless the file describes those themselves.
func New(c *config.Config) *Catalog {
	cat := &Catalog{config: c, models: map[string]*Model{}, contracts: map[string]*Contract{}}
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

// Listing is one entry of a model list.
type Listing struct {
	Name    string
	OwnedBy string // the maker, or "interlock" for an alias or a model whose maker is not known
}

const owner = "interlock"

// List returns the public names that a key may call, sorted: aliases, models that channels of
// its groups name, and for a channel with "*" the catalogue's models whose maker is named like
// its provider. With "*" others may be called too: see Callable.
func (c *Catalog) List(k *config.Key) []Listing {
	found := map[string]Listing{}
	put := func(name string) {
		if k.Allows(name) {
			found[name] = c.listing(name)
		}
	}
	c.channels(k, func(ch *config.Channel) {
		for name := range ch.Models.Models {
			put(name)
		}
		if !ch.Models.Any {
			return
		}
		for name, m := range c.models {
			_, served := ch.Models.Lookup(name)
			if served && m.Maker == ch.Provider && m.Name == m.Base {
				put(name)
			}
		}
	})
	for name := range c.contracts {
		if c.serves(k, name) {
			put(name)
		}
	}
	list := make([]Listing, 0, len(found))
	for _, l := range found {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Listing) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Callable returns the entry of one name, if the key may call it: listed or not.
func (c *Catalog) Callable(k *config.Key, name string) (Listing, bool) {
	if !k.Allows(name) || !c.serves(k, name) {
		return Listing{}, false
	}
	return c.listing(name), true
}

func (c *Catalog) listing(name string) Listing {
	if _, alias := c.contracts[name]; alias {
		return Listing{name, owner}
	}
	if m := c.models[name]; m != nil && m.Maker != "" {
		return Listing{name, m.Maker}
	}
	return Listing{name, owner}
}

// serves says whether a channel of the key's groups serves a model, or an alias's model.
func (c *Catalog) serves(k *config.Key, name string) (ok bool) {
	if alias := c.contracts[name]; alias != nil {
		name = alias.Model
	}
	c.channels(k, func(ch *config.Channel) {
		_, served := ch.Models.Lookup(name)
		ok = ok || served
	})
	return ok
}

// channels visits the channels of a key's groups that this version can serve.
func (c *Catalog) channels(k *config.Key, visit func(*config.Channel)) {
	for _, name := range k.OrderedGroups() {
		g, ok := c.config.Group(name)
		if !ok {
			continue
		}
		for i := range g.Channels {
			if p := c.config.Providers[g.Channels[i].Provider]; p.Served() {
				visit(&g.Channels[i])
			}
		}
	}
}

// Names lists every model of which anything is known, in no order.
func (c *Catalog) Names() []string {
	names := make([]string, 0, len(c.models))
	for n := range c.models {
		names = append(names, n)
	}
	return names
}
