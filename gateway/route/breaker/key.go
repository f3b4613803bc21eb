package breaker

import "strings"

// Key says what a circuit stands for. Only the fields of its scope are set; make one with
// Place.Key. Keys are comparable.
type Key struct {
	Scope    Scope
	Group    string
	Channel  string
	Model    string // the provider's name of it
	Account  string
	Provider string
	Region   string
	// Identity tells a channel from an earlier one of the same name that was something else:
	// another provider, address or credential.
	Identity string
}

// String names the scope and what it stands for, for people.
func (k Key) String() string {
	parts := []string{k.Scope.String()}
	for _, p := range []string{k.Group, k.Channel, k.Account, k.Provider, k.Region, k.Model} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

// Place is where a route is: everything that a failure on it may say something about.
type Place struct {
	Group, Channel, Account, Provider, Region string
	Model                                     string // the provider's name of it
	Identity                                  string
}

// Key returns the key of the circuit of that scope which concerns the place; false where
// there is none: a channel without a region has no circuit of its region.
func (p *Place) Key(s Scope) (Key, bool) {
	k := Key{Scope: s}
	switch s {
	case Channel:
		k.Group, k.Channel, k.Identity = p.Group, p.Channel, p.Identity
	case Account:
		k.Account = p.Account
	case AccountModel:
		k.Account, k.Model = p.Account, p.Model
	case Provider:
		k.Provider = p.Provider
	case Region:
		k.Provider, k.Region = p.Provider, p.Region
		return k, p.Region != ""
	default:
		k.Group, k.Channel, k.Model, k.Identity = p.Group, p.Channel, p.Model, p.Identity
	}
	return k, true
}
