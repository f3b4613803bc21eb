package catalog

import "github.com/interlock-gateway/interlock/gateway/config"

// Catalog is the models and contracts of one configuration. It is immutable, and safe for
// concurrent use.
type Catalog struct{}

// New makes the catalogue of a configuration: the built-in one, the file's models over it,
// and the aliases' contracts.
func New(c *config.Config) *Catalog { panic("skeleton") }

// Model returns what is known of a model; nil where nothing is.
func (c *Catalog) Model(name string) *Model { panic("skeleton") }

// Contract returns an alias's contract; nil where the name is no alias.
func (c *Catalog) Contract(alias string) *Contract { panic("skeleton") }

// List returns the public names that a key may call, sorted: aliases, models that channels of
// its groups name, and for a channel with "*" the catalogue's models of its provider's maker.
func (c *Catalog) List(k *config.Key) []Listing { panic("skeleton") }

// Listing is one entry of a model list.
type Listing struct {
	Name    string
	OwnedBy string // the maker, or "interlock" for an alias
}

// Makers maps each model name of the built-in catalogue, dated names included, to its maker.
func Makers() map[string]string { panic("skeleton") }

// Check adds to a result what only the catalogue can tell: an alias named like one of its
// models, and substitutes that can never be approved.
func Check(r *config.Result) { panic("skeleton") }
