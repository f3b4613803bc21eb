package route

import (
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

	listed map[string][]*Route // by public name: candidates in order of priority
	// passing is for names that no channel lists but some channel passes on: their routes are
	// made when they are first asked for.
	passes  bool
	passing struct {
		sync.RWMutex
		routes map[string][]*Route
	}
	table *Table
}

// maxPassing bounds the names that one group remembers routes of: callers choose them.
const maxPassing = 1024

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

// candidates returns the routes that serve the model, in order of priority.
func (g *Group) candidates(model string) []*Route {
	if list, ok := g.listed[model]; ok {
		return list
	}
	if !g.passes {
		return nil
	}
	g.passing.RLock()
	list := g.passing.routes[model]
	g.passing.RUnlock()
	if list == nil {
		list = g.pass(model)
	}
	return list
}

// pass makes the routes of a name that is asked for the first time. The name may lie in a
// request's buffer.
func (g *Group) pass(model string) []*Route {
	if !g.Serves(model) {
		return nil
	}
	g.passing.Lock()
	defer g.passing.Unlock()
	if list := g.passing.routes[model]; list != nil {
		return list
	}
	if len(g.passing.routes) >= maxPassing {
		g.forgetOne()
	}
	model = strings.Clone(model)
	list := g.route(model)
	if g.passing.routes == nil {
		g.passing.routes = map[string][]*Route{}
	}
	g.passing.routes[model] = list
	return list
}

// forgetOne drops the routes of one name, with circuits that have nothing to remember if there
// are any. Requests that hold them may go on using them.
func (g *Group) forgetOne() {
	victim := ""
	for name, list := range g.passing.routes {
		victim = name
		if !slices.ContainsFunc(list, (*Route).sick) {
			break
		}
	}
	for _, r := range g.passing.routes[victim] {
		if !r.Channel.names(r.Upstream) {
			g.table.state.circuits.Forget(&r.place)
		}
	}
	delete(g.passing.routes, victim)
}

// route makes the routes of a model, in order of priority.
func (g *Group) route(model string) []*Route {
	var list []*Route
	for _, c := range g.Channels {
		if served, ok := c.lookup(model); ok {
			list = append(list, newRoute(c, model, served, g.table))
		}
	}
	slices.SortStableFunc(list, func(a, b *Route) int { return a.Channel.Priority - b.Channel.Priority })
	return list
}

// each calls f for every route that exists.
func (g *Group) each(f func(*Route)) {
	for _, name := range g.Models() {
		for _, r := range g.listed[name] {
			f(r)
		}
	}
	g.passing.RLock()
	names := make([]string, 0, len(g.passing.routes))
	for n := range g.passing.routes {
		names = append(names, n)
	}
	slices.Sort(names)
	var list []*Route
	for _, n := range names {
		list = append(list, g.passing.routes[n]...)
	}
	g.passing.RUnlock()
	for _, r := range list {
		f(r)
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
