package route

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// ErrNotFound: there is no such group, channel or model.
var ErrNotFound = errors.New("not found")

// ChannelStatus is how one channel is at a moment, for operators.
type ChannelStatus struct {
	Channel     *Channel
	State       Usability // of its best route; of the channel where a switch or isolation holds
	Running     int       // attempts in flight
	Waiting     int       // in its queue
	FirstOutput time.Duration
	LastFailure *Failure          // nil: none yet
	Isolation   *breaker.Isolated // nil: none
	Switch      *storage.Switch   // in force on the channel, its group, provider or account; nil: none
	Routes      []RouteStatus     // those that exist: listed ones, and names that were passed on
}

// RouteStatus is how one route is at a moment.
type RouteStatus struct {
	Route        *Route
	Availability Availability
	Circuit      breaker.State // the sickest of those that concern every request
	Circuits     []CircuitStatus
	CoolingUntil time.Time       // zero: its account does not rest
	Switch       *storage.Switch // in force on the route; nil: none
}

// CircuitStatus is how a circuit is that concerns a route. Closed ones of wider scopes count.
type CircuitStatus struct {
	Scope breaker.Scope
	State breaker.State
	Until time.Time // of an open one: when it lets a probe through
}

// Channels returns how every channel is, in the configuration's order.
func (t *Table) Channels(now time.Time) []ChannelStatus {
	var all []ChannelStatus
	at := map[*Channel]int{}
	for _, g := range t.groups {
		for _, c := range g.Channels {
			at[c] = len(all)
			all = append(all, c.status(now))
		}
		g.each(func(r *Route) {
			s := &all[at[r.Channel]]
			s.Routes = append(s.Routes, r.status(now))
		})
	}
	for i := range all {
		all[i].State = all[i].overall()
	}
	return all
}

func (c *Channel) status(now time.Time) ChannelStatus {
	s := ChannelStatus{
		Channel: c, FirstOutput: time.Duration(c.state.latency.Load()),
		LastFailure: c.state.last.Load(), Switch: c.switchedOff(now),
	}
	s.Running, s.Waiting = c.Gate.Load()
	if f, ok := c.account.isolation.Fact(now); ok {
		s.Isolation = &f
	}
	return s
}

// switchedOff returns the switch in force on the whole channel; nil if there is none.
func (c *Channel) switchedOff(now time.Time) *storage.Switch {
	set := c.Group.table.Switches()
	for _, of := range [...][2]string{
		{switches.Channel, c.Label()},
		{switches.Group, c.Group.Name},
		{switches.Provider, c.Provider},
		{switches.Account, c.Account},
	} {
		if sw := set.Off(of[0], of[1], now); sw != nil {
			return sw
		}
	}
	return nil
}

func (s *ChannelStatus) overall() Usability {
	switch {
	case s.Switch != nil:
		return SwitchedOff
	case s.Isolation != nil:
		return Isolated
	case len(s.Routes) == 0:
		return Ready
	}
	best := SwitchedOff
	for i := range s.Routes {
		best = max(best, s.Routes[i].Availability.State)
	}
	return best
}

func (r *Route) status(now time.Time) RouteStatus {
	s := RouteStatus{
		Route: r, Availability: r.Availability(now, Ask{}), Circuit: r.circuit(now), Switch: r.switchedOff(now),
	}
	s.CoolingUntil, _ = r.Channel.account.cool.Until(r.Upstream, now)
	add := func(c *breaker.Circuit) {
		state, until := c.State(now)
		s.Circuits = append(s.Circuits, CircuitStatus{Scope: c.Key().Scope, State: state, Until: until})
	}
	add(r.own)
	for _, c := range r.concerns() {
		add(c.Circuit)
	}
	return s
}

// Circuits calls f with the state of every route's circuits.
func (t *Table) Circuits(now time.Time, f func(group, channel, model string, s breaker.State)) {
	for _, g := range t.groups {
		g.each(func(r *Route) { f(g.Name, r.Channel.Name, r.Model, r.circuit(now)) })
	}
}

// Reset closes every circuit that concerns a route and ends its account's isolation. It
// reports whether there was anything to end; the error, ErrNotFound, names what is not there.
func (t *Table) Reset(group, channel, model string, now time.Time) (bool, error) {
	r, err := t.find(group, channel, model)
	if err != nil {
		return false, err
	}
	ended := r.own.Reset(now)
	for _, c := range r.concerns() {
		ended = c.Reset(now) || ended
	}
	return r.Channel.account.release(endedByReset, now) || ended, nil
}

func (t *Table) find(group, channel, model string) (*Route, error) {
	g := t.byName[group]
	if g == nil {
		return nil, fmt.Errorf("group %q: %w", group, ErrNotFound)
	}
	for _, c := range g.Channels {
		if c.Name != channel {
			continue
		}
		if list := g.candidates(model); list != nil {
			for _, r := range list.routes {
				if r.Channel == c {
					return r, nil
				}
			}
		}
		return nil, fmt.Errorf("channel %q of group %q does not serve model %q: %w", channel, group, model, ErrNotFound)
	}
	return nil, fmt.Errorf("channel %q of group %q: %w", channel, group, ErrNotFound)
}
