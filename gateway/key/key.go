package key

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// DefaultBudget is the budget of a key that names none.
const DefaultBudget = "interactive"

// Key is one caller's key: what may be asked for with it. It is not to be changed.
type Key struct {
	ID      string // of a key made at run time, else ""
	Name    string
	Groups  []string // names, in order
	Budget  string   // its default
	Budgets []string // others that the caller may name
	RPM     int      // 0 = no limit
	Labels  map[string]string
	Guards  []config.Guard

	models []config.Glob
	digest [sha256.Size]byte
}

// MayCall reports whether the key's globs match the model's public name. It does not
// allocate.
func (k *Key) MayCall(model string) bool {
	for _, g := range k.models {
		if g.Match(model) {
			return true
		}
	}
	return false
}

// MayName reports whether the caller may name the budget: its own default it always may.
func (k *Key) MayName(budget string) bool {
	return budget == k.Budget || slices.Contains(k.Budgets, budget)
}

func configured(c *config.Key) *Key {
	k := &Key{
		Name: c.Name, Groups: c.OrderedGroups(), Budget: c.Budget, Budgets: c.Budgets,
		RPM: c.RPM, Labels: c.Labels, Guards: c.Guards, models: c.Models, digest: c.Digest(),
	}
	k.complete()
	return k
}

// made reads a key that was made at run time. The error names the key, never what it is.
func made(s *storage.Key) (*Key, error) {
	k := &Key{
		ID: s.ID, Name: s.Name, Groups: s.Groups, Budget: s.Budget, Budgets: s.Budgets,
		RPM: s.RPM, Labels: s.Labels, digest: s.SHA256,
	}
	for _, pattern := range s.Models {
		g, err := config.NewGlob(pattern)
		if err != nil {
			return nil, fmt.Errorf("key %q: models: %q: %w", s.Name, pattern, err)
		}
		k.models = append(k.models, g)
	}
	k.complete()
	return k, nil
}

// complete fills in what was left out.
func (k *Key) complete() {
	if k.Budget == "" {
		k.Budget = DefaultBudget
	}
	if len(k.models) == 0 {
		every, err := config.NewGlob("*")
		if err != nil {
			panic(err)
		}
		k.models = []config.Glob{every}
	}
}
