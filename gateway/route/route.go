package route

import (
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Route is one model on one channel. Within a Table the same *Route is the same route; over
// tables, and for two public names of one upstream model, see Same.
type Route struct {
	Channel  *Channel
	Model    string // public name
	Upstream string // the provider's name of it
	// Mapped: the channel answers with another model than it is asked for. An upstream_model
	// that the operator declared counts as the same model, unless the built-in catalogue knows
	// both names, as two models.
	Mapped bool

	state    *State
	place    breaker.Place
	own      *breaker.Circuit
	wider    atomic.Pointer[wider]
	off      atomic.Pointer[off]
	streamed Timeouts
	plain    Timeouts
}

// wider is what other circuits concern a route, as of one version of the registry.
type wider struct {
	version uint64
	list    []breaker.Concern
}

// off is what switches concern a route, of one set.
type off struct {
	set  *switches.Set
	list []*storage.Switch
}

func newRoute(c *Channel, model string, served config.ChannelModel, t *Table) *Route {
	r := &Route{Channel: c, Model: model, Upstream: served.Upstream(model), state: t.state}
	r.place = breaker.Place{
		Group: c.Group.Name, Channel: c.Name, Account: c.Account, Provider: c.Provider, Region: c.Region,
		Model: r.Upstream, Identity: c.identity,
	}
	k, _ := r.place.Key(breaker.ChannelModel)
	r.own = t.state.circuits.Circuit(k)
	known := t.models.Model(model)
	r.Mapped = differ(known, t.models.Model(r.Upstream))
	reasoning := known != nil && known.Capabilities.Has(catalog.Reasoning)
	r.streamed, r.plain = clocks(c.timeouts, served.Timeouts, reasoning)
	return r
}

// differ reports whether both are models of the built-in catalogue, and not the same.
func differ(a, b *catalog.Model) bool {
	return a != nil && b != nil && a.Maker != "" && b.Maker != "" && a.Base != b.Base
}

// Timeouts are the clocks of an attempt. Zero FirstByte or FirstOutput: none of its own, the
// request's deadline less the reserve holds.
type Timeouts struct{ Connect, FirstByte, FirstOutput, Idle time.Duration }

func clocks(channel, model config.Timeouts, reasoning bool) (streamed, plain Timeouts) {
	streamed = Timeouts(channel.Resolve(model, config.Call{Stream: true, Reasoning: reasoning}))
	plain = streamed
	if !channel.FirstByte.Set && !model.FirstByte.Set {
		plain.FirstByte = 0
	}
	if !channel.FirstOutput.Set && !model.FirstOutput.Set {
		plain.FirstOutput = 0
	}
	return streamed, plain
}

// Timeouts returns the clocks for a streamed or a plain answer.
func (r *Route) Timeouts(stream bool) Timeouts {
	if stream {
		return r.streamed
	}
	return r.plain
}

// String returns GROUP/CHANNEL/MODEL.
func (r *Route) String() string { return r.Channel.Label() + "/" + r.Model }

// Same reports whether both are the same route: the same channel and the same upstream model.
func (r *Route) Same(o *Route) bool {
	return r.Upstream == o.Upstream && r.Channel.Name == o.Channel.Name && r.Channel.Group.Name == o.Channel.Group.Name
}

// concerns returns the circuits beyond its own that concern the route.
func (r *Route) concerns() []breaker.Concern {
	v := r.state.circuits.Version()
	if v == 0 {
		return nil
	}
	if w := r.wider.Load(); w != nil && w.version == v {
		return w.list
	}
	list, v := r.state.circuits.Wider(&r.place)
	r.wider.Store(&wider{version: v, list: list})
	return list
}

// switchedOff returns the switch in force on the route; nil if there is none.
func (r *Route) switchedOff(now time.Time) *storage.Switch {
	set := r.state.switches.Set()
	if set.Empty() {
		return nil
	}
	o := r.off.Load()
	if o == nil || o.set != set {
		o = r.resolve(set)
		r.off.Store(o)
	}
	for _, sw := range o.list {
		if switches.Active(sw, now) {
			return sw
		}
	}
	return nil
}

// resolve finds the switches of a set that concern the route, expired ones included.
func (r *Route) resolve(set *switches.Set) *off {
	o := &off{set: set}
	for _, of := range [...][2]string{
		{switches.Channel, r.Channel.Label()},
		{switches.Group, r.place.Group},
		{switches.Provider, r.place.Provider},
		{switches.Account, r.place.Account},
		{switches.Model, r.Model},
	} {
		if sw := set.Find(of[0], of[1]); sw != nil {
			o.list = append(o.list, sw)
		}
	}
	return o
}

// CircuitWord returns the state of the route's circuits, for the ledger: closed, half_open or
// open. Those of single capabilities do not count.
func (r *Route) CircuitWord(now time.Time) string { return r.circuit(now).String() }

// circuit returns the sickest state of the circuits that concern every request.
func (r *Route) circuit(now time.Time) breaker.State {
	worst, _ := r.own.State(now)
	for _, c := range r.concerns() {
		if c.Uses == 0 {
			s, _ := c.State(now)
			worst = max(worst, s)
		}
	}
	return worst
}

// sick reports whether the route's own circuit has something to remember.
func (r *Route) sick() bool {
	s, _ := r.own.State(time.Now())
	return s != breaker.Closed
}

// ramping reports whether a circuit that concerns the route closed lately.
func (r *Route) ramping(now time.Time) bool {
	if r.own.Ramping(now) {
		return true
	}
	for _, c := range r.concerns() {
		if c.Uses == 0 && c.Ramping(now) {
			return true
		}
	}
	return false
}

// turn says whether the route goes first though it is ramping.
func (r *Route) turn(now time.Time) bool {
	turn := r.own.Turn(now)
	for _, c := range r.concerns() {
		if c.Uses == 0 {
			turn = c.Turn(now) && turn
		}
	}
	return turn
}
