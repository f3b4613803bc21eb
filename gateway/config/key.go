package config

import (
	"crypto/sha256"
	"encoding/hex"
)

// Key is a caller's API key.
type Key struct {
	// Unique among the keys; what logs and the ledger call it.
	Name string `yaml:"name" required:"true" is:"name"`
	// The key itself: 8 printable characters or more. Or key_sha256.
	Key Secret `yaml:"key" is:"key"`
	// The key's SHA-256 in hex, instead of the key.
	KeySHA256 string `yaml:"key_sha256" is:"sha256"`
	// Its groups: the primary one, then the ordered fallback groups. Or smart.
	Groups []string `yaml:"groups" is:"name"`
	// A strategy over several groups, instead of an order.
	Smart *Smart `yaml:"smart" soon:"smart keys (its groups are used in the order given)"`
	// Globs over the public names that it may ask for.
	Models []Glob `yaml:"models" default:"*"`
	// Its budget where neither the caller nor an alias names one.
	Budget string `yaml:"budget" default:"interactive" is:"name"`
	// Other budgets that a caller may name in interlock-budget.
	Budgets []string `yaml:"budgets" is:"name"`
	// Requests in any 60 s; 0 is no limit.
	RPM int `yaml:"rpm" min:"0"`
	// Tokens in any 60 s; 0 is no limit.
	TPM int `yaml:"tpm" min:"0" soon:"TPM limits"`
	// What it may spend.
	Spend Spend `yaml:"spend" soon:"spend limits"`
	// Facts that reach policies as input.key.labels.
	Labels map[string]string `yaml:"labels" keys:"name"`
	// Plugins that look at its requests and answers.
	Guards []Guard `yaml:"guards"`
}

// Smart is a strategy over several groups. Not in force yet.
type Smart struct {
	// How the groups' channels are ordered.
	Strategy Strategy `yaml:"strategy" required:"true" enum:"priority|weighted|least_latency|least_cost"`
	// The groups.
	Groups []string `yaml:"groups" required:"true" is:"name"`
}

// Spend is a limit of money. Not in force yet.
type Spend struct {
	// US dollars; 0 is no limit.
	USD float64 `yaml:"usd" min:"0"`
	// In which time.
	Per string `yaml:"per" default:"month" enum:"hour|day|week|month"`
}

// OrderedGroups returns the key's groups in order; those of smart while that is not in force.
func (k *Key) OrderedGroups() []string {
	if k.Smart != nil {
		return k.Smart.Groups
	}
	return k.Groups
}

// Digest returns the key's SHA-256.
func (k *Key) Digest() (d [sha256.Size]byte) {
	if k.KeySHA256 == "" {
		return sha256.Sum256([]byte(k.Key.Reveal()))
	}
	_, _ = hex.Decode(d[:], []byte(k.KeySHA256))
	return d
}

// Allows says whether the key may ask for a public name.
func (k *Key) Allows(public string) bool {
	for _, g := range k.Models {
		if g.Match(public) {
			return true
		}
	}
	return false
}
