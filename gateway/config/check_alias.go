package config

import (
	"slices"
)

func (d *document) checkAliases(c *Config) {
	for _, name := range keysOf(c.Aliases) {
		a, path := c.Aliases[name], Join("aliases", name)
		if c.names(name) {
			d.fail(path, "an alias may not be named like a model")
		}
		if a.Budget != "" {
			d.references(path+".budget", "budget", []string{a.Budget}, c.Budgets)
		}
		if !a.SameModelFailoverFirst && d.has(path+".same_model_failover_first") {
			d.fail(path+".same_model_failover_first", "only true is allowed for now")
		}
		if a.Requires.Evidence != EvidenceNone && d.has(path+".requires.evidence") {
			d.warn(path+".requires.evidence", "not in force: this version does not have contract probes and their evidence yet")
		}
		d.checkGuards(c, a.Guards, path+".guards")
		d.checkModel(c, a.Model, &a, path+".model", "the alias can never be answered by it")
		d.checkSubstitutes(c, &a, path)
	}
}

// names says whether the file names a model so: describes it, or has a channel that serves it.
func (c *Config) names(model string) bool {
	if _, ok := c.Models[model]; ok {
		return true
	}
	return slices.ContainsFunc(c.Groups, func(g Group) bool {
		return slices.ContainsFunc(g.Channels, func(ch Channel) bool {
			_, ok := ch.Models.Models[model]
			return ok
		})
	})
}

func (d *document) checkSubstitutes(c *Config, a *Alias, path string) {
	seen := unique{d: d}
	for i, s := range a.Substitutes {
		place := at(path+".substitutes", i) + ".model"
		seen.add(s.Model, place)
		switch {
		case s.Model == "":
		case s.Model == a.Model:
			d.warn(place, "can never be approved: it is the alias's own model")
		case !a.CrossModelFallbackAllowed:
			d.warn(place, "can never be approved: cross_model_fallback_allowed is false")
		default:
			d.checkModel(c, s.Model, a, place, "it can never be approved")
		}
	}
}

// checkModel warns of a model that no channel serves, or none where the alias demands it.
func (d *document) checkModel(c *Config, model string, a *Alias, path, so string) {
	if model == "" {
		return
	}
	if _, ok := c.Aliases[model]; ok {
		d.fail(path, "is an alias; a model is expected")
		return
	}
	served, inRegion := false, false
	for i := range c.Groups {
		for j := range c.Groups[i].Channels {
			ch := &c.Groups[i].Channels[j]
			if _, ok := ch.Models.Lookup(model); !ok {
				continue
			}
			served = true
			inRegion = inRegion || a.Requires.Region(ch.Region)
		}
	}
	switch {
	case !served:
		d.warn(path, "no channel serves this model: %s", so)
	case !inRegion:
		d.warn(path, "no channel serves this model in the alias's regions: %s", so)
	}
}

// Region says whether an answer may come from a region.
func (r *Requires) Region(region string) bool {
	return len(r.Regions) == 0 || slices.Contains(r.Regions, region)
}
