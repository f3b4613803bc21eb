package route

import (
	"slices"
	"time"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Table is one immutable generation of groups, channels and routes. Safe for concurrent use.
type Table struct {
	state    *State
	models   Models
	groups   []*Group
	byName   map[string]*Group
	config   *config.Config
	settings breaker.Settings
}

// Build makes the table of a configuration that is valid. What State knows of the same
// channels, accounts and groups is carried over; nothing of it changes before Activate, so a
// table that is not wanted after all can be forgotten.
func Build(c *config.Config, models Models, s *State) *Table {
	b := c.Breaker
	t := &Table{
		state: s, models: models, config: c, byName: make(map[string]*Group, len(c.Groups)),
		settings: breaker.Settings{
			Window: b.Window, MinRequests: b.MinRequests, FailureRatio: b.FailureRatio,
			ConsecutiveFailures: b.ConsecutiveFailures, OpenFor: b.OpenFor, MaxOpen: b.MaxOpen,
			HalfOpenProbes: b.HalfOpenProbes, Ramp: b.Ramp,
		},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.Groups {
		g := t.group(&c.Groups[i], i)
		t.groups = append(t.groups, g)
		t.byName[g.Name] = g
	}
	return t
}

// group makes one group. The state's lock is held.
func (t *Table) group(c *config.Group, index int) *Group {
	g := &Group{
		Name: c.Name, Index: index, RPM: t.state.window(c.Name, c.RPM),
		weighted: c.Strategy == config.Weighted, rpm: c.RPM, listed: map[string]*roster{}, table: t,
	}
	for i := range c.Channels {
		ch := t.channel(g, &c.Channels[i], i)
		g.Channels = append(g.Channels, ch)
		g.passes = g.passes || !ch.off && (ch.models.Any || len(ch.models.Unlisted) > 0)
	}
	for _, ch := range g.Channels {
		for name := range ch.models.Models {
			if _, known := g.listed[name]; !known && !ch.off {
				g.listed[name] = g.route(name)
			}
		}
	}
	return g
}

// channel makes one channel. The state's lock is held.
func (t *Table) channel(g *Group, c *config.Channel, index int) *Channel {
	p := t.config.Providers[c.Provider]
	ch := &Channel{
		Name: c.Name, Group: g, Index: index, Provider: c.Provider, Account: c.AccountName(g.Name), Region: c.Region,
		Priority: c.Priority, Weight: c.Weight, Fingerprint: config.Fingerprint(c.Credential),
		models: c.Models, timeouts: c.Timeouts, bounds: bounds{c.MaxConcurrency, c.Queue}, off: !p.Served(),
		identity: config.Digest(struct {
			Name, Account, Region string
			Provider              config.Provider
			Credential            config.Secret
		}{c.Provider, c.AccountName(g.Name), c.Region, p, c.Credential}),
	}
	ch.account = t.state.account(ch.Account)
	ch.state = t.state.channel(ch.Label(), ch.bounds.gate)
	ch.Gate = ch.state.gate
	return ch
}

// Activate puts the table into force: limits and settings are applied, circuits and accounts
// that no channel has any more are forgotten, an isolation whose credential has changed ends.
// Call it when the table is the one that new requests use, for one table after the other.
func (t *Table) Activate(now time.Time) {
	s := t.state
	s.circuits.Configure(t.settings)
	s.circuits.Keep(t.wants(now))
	credentials := t.credentials()

	s.mu.Lock()
	before, kept := s.accounts, s.kept
	s.channels, s.accounts, s.windows, s.kept = map[string]*channelState{}, map[string]*account{}, map[string]*limit.Window{}, nil
	for _, g := range t.groups {
		g.RPM.SetLimit(g.rpm)
		s.windows[g.Name] = g.RPM
		for _, c := range g.Channels {
			c.Gate.Resize(c.bounds.limit, c.bounds.queue.Max, c.bounds.queue.Wait)
			s.channels[c.Label()], s.accounts[c.Account] = c.state, c.account
			list := credentials[c.Account]
			c.account.fingerprints.Store(&list)
		}
	}
	accounts := s.accounts
	s.mu.Unlock()

	for name, a := range before {
		if accounts[name] == nil {
			a.release(endedByRemoval, now)
		} else if f, ok := a.isolation.Fact(now); ok && !a.uses(f.Fingerprint) {
			a.release(endedByCredential, now)
		}
	}
	s.takeOver(kept, accounts, now)
}

// credentials lists the fingerprints of each account's credentials.
func (t *Table) credentials() map[string][]string {
	list := map[string][]string{}
	for _, g := range t.groups {
		for _, c := range g.Channels {
			list[c.Account] = append(list[c.Account], c.Fingerprint)
		}
	}
	return list
}

// takeOver puts the isolations of an earlier process in force again, where the credential is
// still the same; the others are over.
func (s *State) takeOver(kept []storage.Isolation, accounts map[string]*account, now time.Time) {
	byScope := make(map[string]*account, len(accounts))
	for _, a := range accounts {
		byScope[a.scope()] = a
	}
	for _, i := range kept {
		a := byScope[i.Scope]
		if a == nil || !a.uses(i.Fingerprint) {
			s.keeper.changed(gone(i))
			continue
		}
		if a.isolation.Restore(breaker.Isolated{Reason: i.Reason, Fingerprint: i.Fingerprint, Since: i.Since}, now) {
			s.watcher.IsolationChanged(IsolationChange{Account: a.name, Isolated: true, Reason: i.Reason, At: now})
		}
	}
}

// wants says which circuits the table still has a use for: those of its own parts, and of a
// model that no channel lists only if there is something to remember.
func (t *Table) wants(now time.Time) func(*breaker.Circuit) bool {
	channels, accounts, providers, regions := map[string]*Channel{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	listed := map[string]bool{}
	for _, g := range t.groups {
		for _, c := range g.Channels {
			channels[c.Label()] = c
			accounts[c.Account], providers[c.Provider], regions[c.Provider+"/"+c.Region] = true, true, true
		}
		g.each(func(r *Route) { listed[r.Channel.Label()+"/"+r.Upstream] = true })
	}
	return func(circuit *breaker.Circuit) bool {
		k := circuit.Key()
		switch k.Scope {
		case breaker.Account, breaker.AccountModel:
			return accounts[k.Account]
		case breaker.Provider:
			return providers[k.Provider]
		case breaker.Region:
			return regions[k.Provider+"/"+k.Region]
		}
		label := k.Group + "/" + k.Channel
		c := channels[label]
		if c == nil || c.identity != k.Identity {
			return false
		}
		if k.Scope == breaker.Channel || listed[label+"/"+k.Model] {
			return true
		}
		s, _ := circuit.State(now)
		return c.Group.passes && s != breaker.Closed
	}
}

// Group finds a group by name; nil if there is none.
func (t *Table) Group(name string) *Group { return t.byName[name] }

// Groups lists the groups in the configuration's order. The slice is not to be changed.
func (t *Table) Groups() []*Group { return t.groups }

// Switches returns the switches that are set now.
func (t *Table) Switches() *switches.Set { return t.state.switches.Set() }

// Changed returns a channel that is closed at the next change of a switch. Who waits takes it
// first, looks at what it waits for then, and waits last: so no change is missed.
func (t *Table) Changed() <-chan struct{} { return t.state.switches.Changed() }

// Acts returns the acts that are switched off now, for all requests and for those of an alias
// ("" = none).
func (t *Table) Acts(alias string, now time.Time) switches.Acts { return t.Switches().Acts(alias, now) }

// AliasOff reports whether an alias is switched off.
func (t *Table) AliasOff(alias string, now time.Time) bool {
	return t.Switches().Off(switches.Alias, alias, now) != nil
}

// Known says whether the configuration has something of that name that can be switched off,
// or, of a model, some channel serves it.
func (t *Table) Known(kind, name string) bool {
	switch kind {
	case switches.Group:
		return t.byName[name] != nil
	case switches.Provider:
		_, ok := t.config.Providers[name]
		return ok
	case switches.Alias:
		_, ok := t.config.Aliases[name]
		return ok
	case switches.Model:
		if _, ok := t.config.Models[name]; ok {
			return true
		}
		return slices.ContainsFunc(t.groups, func(g *Group) bool { return g.Serves(name) })
	}
	for _, g := range t.groups {
		for _, c := range g.Channels {
			if kind == switches.Channel && c.Label() == name || kind == switches.Account && c.Account == name {
				return true
			}
		}
	}
	return false
}
