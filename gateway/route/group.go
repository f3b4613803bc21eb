package route

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
)

// Group is an ordered pool of channels with one admission per minute.
type Group struct {
	Name     string
	Index    int // in the configuration
	RPM      *limit.Window
	Channels []*Channel // in the configuration's order

	weighted bool // strategy weighted: all channels are drawn by weight, whatever their priority
	rpm      int  // to be applied to RPM

	listed map[string]*roster // by public name
	// passing is for names that no channel lists but some channel passes on: their routes are
	// made when they are first asked for. Requests read it without a lock.
	passes  bool
	passing struct {
		routes sync.Map   // name to *roster
		mu     sync.Mutex // whoever changes it
		names  int
	}
	table *Table
}

// Callers choose the names that are passed on, so one group remembers routes of so many names
// and, where it has many channels, of so many routes at most.
const (
	maxPassing       = 1024
	maxPassingRoutes = 128 << 10
)

// Serves reports whether a channel of the group serves the model.
func (g *Group) Serves(model string) bool {
	if _, ok := g.listed[model]; ok {
		return true
	}
	return g.passes && slices.ContainsFunc(g.Channels, func(c *Channel) bool {
		_, ok := c.lookup(model)
		return ok
	})
}

// Models lists the public names that channels of the group name, sorted.
func (g *Group) Models() []string {
	names := make([]string, 0, len(g.listed))
	for n := range g.listed {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// candidates returns the routes that serve the model; nil where there are none.
func (g *Group) candidates(model string) *roster {
	if list, ok := g.listed[model]; ok {
		return list
	}
	if !g.passes {
		return nil
	}
	if list, ok := g.passing.routes.Load(model); ok {
		return list.(*roster)
	}
	return g.pass(model)
}

// pass makes the routes of a name that is asked for the first time. The name may lie in a
// request's buffer.
func (g *Group) pass(model string) *roster {
	if !g.Serves(model) {
		return nil
	}
	p := &g.passing
	p.mu.Lock()
	defer p.mu.Unlock()
	if list, ok := p.routes.Load(model); ok {
		return list.(*roster)
	}
	if p.names >= max(1, min(maxPassing, maxPassingRoutes/len(g.Channels))) {
		g.forgetOne()
	}
	model = strings.Clone(model)
	list := g.route(model)
	p.routes.Store(model, list)
	p.names++
	return list
}

// forgetOne drops the routes of one name, with circuits that have nothing to remember if there
// are any. Requests that hold them may go on using them.
func (g *Group) forgetOne() {
	var victim any
	var list *roster
	g.passing.routes.Range(func(name, routes any) bool {
		victim, list = name, routes.(*roster)
		return slices.ContainsFunc(list.routes, (*Route).sick)
	})
	for _, r := range list.routes {
		if !r.Channel.names(r.Upstream) {
			g.table.state.circuits.Forget(&r.place)
		}
	}
	g.passing.routes.Delete(victim)
	g.passing.names--
}

// route makes the routes of a model.
func (g *Group) route(model string) *roster {
	var list []*Route
	for _, c := range g.Channels {
		if served, ok := c.lookup(model); ok {
			list = append(list, newRoute(c, model, served, g.table))
		}
	}
	slices.SortStableFunc(list, func(a, b *Route) int { return a.Channel.Priority - b.Channel.Priority })
	return newRoster(list, g.weighted)
}

// each calls f for every route that exists, in the order of the models' names.
func (g *Group) each(f func(*Route)) {
	for _, name := range g.Models() {
		for _, r := range g.listed[name].routes {
			f(r)
		}
	}
	passed := map[string]*roster{}
	g.passing.routes.Range(func(name, list any) bool {
		passed[name.(string)] = list.(*roster)
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		for _, r := range passed[name].routes {
			f(r)
		}
	}
}

// Channel is one way into one account.
type Channel struct {
	Name        string
	Group       *Group
	Index       int    // in its group
	Provider    string // name
	Account     string // name; GROUP/NAME where none is configured
	Region      string // "" = not said
	Priority    int    // lower goes first
	Weight      int
	Fingerprint string // of the credential
	Gate        *limit.Gate

	identity string // of everything that makes it the same channel over reloads
	models   config.Served
	timeouts config.Timeouts
	bounds   bounds
	off      bool // its provider is not served by this version: it is no candidate for anything
	account  *account
	state    *channelState
}

// bounds are those of a channel's gate.
type bounds struct {
	limit int
	queue config.Queue
}

func (b bounds) gate() *limit.Gate { return limit.NewGate(b.limit, b.queue.Max, b.queue.Wait) }

// Label returns GROUP/NAME.
func (c *Channel) Label() string { return c.Group.Name + "/" + c.Name }

// lookup returns how the channel serves a model; false where it does not.
func (c *Channel) lookup(model string) (config.ChannelModel, bool) {
	if c.off || model == "" {
		return config.ChannelModel{}, false
	}
	return c.models.Lookup(model)
}

// names reports whether a model that the channel lists has that name upstream.
func (c *Channel) names(upstream string) bool {
	for public, m := range c.models.Models {
		if m.Upstream(public) == upstream {
			return true
		}
	}
	return false
}

// Models is what the table asks the catalogue. *catalog.Catalog is one.
type Models interface {
	// Model returns what is known of a model; nil where nothing is.
	Model(name string) *catalog.Model
}
