package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

type channelView struct {
	Group         string         `json:"group"`
	Channel       string         `json:"channel"`
	Provider      string         `json:"provider"`
	Account       string         `json:"account"`
	Region        *string        `json:"region"`
	Priority      int            `json:"priority"`
	Weight        int            `json:"weight"`
	State         string         `json:"state"` // of its best route
	InFlight      int            `json:"in_flight"`
	Queued        int            `json:"queued"`
	FirstOutputMS *int64         `json:"first_output_ms"`
	LastFailure   *failureView   `json:"last_failure"`
	Isolation     *isolationView `json:"isolation"`
	Switch        *switchView    `json:"switch"`
	Evidence      *struct{}      `json:"evidence"` // null as long as nothing is probed
	Models        []routeView    `json:"models"`
}

type failureView struct {
	At     time.Time `json:"at"`
	Class  string    `json:"class"`
	Reason string    `json:"reason"`
	Model  string    `json:"model"`
}

type isolationView struct {
	Reason    string     `json:"reason"`
	Since     time.Time  `json:"since"`
	NextProbe *time.Time `json:"next_probe"`
}

type routeView struct {
	Model         string        `json:"model"`
	UpstreamModel string        `json:"upstream_model"`
	Mapped        bool          `json:"mapped"`
	State         string        `json:"state"`
	Reason        *string       `json:"reason"`
	Until         *time.Time    `json:"until"`
	Circuit       string        `json:"circuit"`
	Circuits      []circuitView `json:"circuits"`
	CoolingUntil  *time.Time    `json:"cooling_until"`
	Switch        *switchView   `json:"switch"`
}

type circuitView struct {
	Scope string     `json:"scope"`
	State string     `json:"state"`
	Until *time.Time `json:"until"`
}

func viewChannel(c *route.ChannelStatus) channelView {
	v := channelView{
		Group: c.Channel.Group.Name, Channel: c.Channel.Name, Provider: c.Channel.Provider, Account: c.Channel.Account,
		Region: textOrNull(c.Channel.Region), Priority: c.Channel.Priority, Weight: c.Channel.Weight,
		State: c.State.String(), InFlight: c.Running, Queued: c.Waiting,
		Switch: viewSwitch(c.Switch), Models: make([]routeView, len(c.Routes)),
	}
	if c.FirstOutput > 0 {
		ms := c.FirstOutput.Milliseconds()
		v.FirstOutputMS = &ms
	}
	if f := c.LastFailure; f != nil {
		v.LastFailure = &failureView{At: f.At.UTC(), Class: f.Class.String(), Reason: f.Reason, Model: f.Model}
	}
	if i := c.Isolation; i != nil {
		v.Isolation = &isolationView{Reason: i.Reason, Since: i.Since.UTC(), NextProbe: timeOrNull(i.Next)}
	}
	for i := range c.Routes {
		v.Models[i] = viewRoute(&c.Routes[i])
	}
	return v
}

func viewRoute(r *route.RouteStatus) routeView {
	v := routeView{
		Model: r.Route.Model, UpstreamModel: r.Route.Upstream, Mapped: r.Route.Mapped,
		State: r.Availability.State.String(), Reason: textOrNull(r.Availability.Reason), Until: timeOrNull(r.Availability.Until),
		Circuit: r.Circuit.String(), CoolingUntil: timeOrNull(r.CoolingUntil), Switch: viewSwitch(r.Switch),
		Circuits: make([]circuitView, len(r.Circuits)),
	}
	for i, c := range r.Circuits {
		v.Circuits[i] = circuitView{Scope: c.Scope.String(), State: c.State.String()}
		if c.State == breaker.Open {
			v.Circuits[i].Until = timeOrNull(c.Until)
		}
	}
	return v
}

func (s *Server) channels(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	g := s.Generation()
	list := g.Table.Channels(s.Now())
	views := make([]channelView, len(list))
	for i := range list {
		views[i] = viewChannel(&list[i])
	}
	return writeJSON(w, http.StatusOK, struct {
		Generation uint64        `json:"generation"`
		Channels   []channelView `json:"channels"`
	}{g.Number, views})
}

type breakerView struct {
	Group        string         `json:"group"`
	Channel      string         `json:"channel"`
	Model        string         `json:"model"`
	State        string         `json:"state"`
	Circuits     []circuitView  `json:"circuits"`
	CoolingUntil *time.Time     `json:"cooling_until"`
	Isolation    *isolationView `json:"isolation"`
}

func (s *Server) breakers(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	views := []breakerView{}
	list := s.Generation().Table.Channels(s.Now())
	for i := range list {
		ch := viewChannel(&list[i])
		for _, r := range ch.Models {
			views = append(views, breakerView{
				Group: ch.Group, Channel: ch.Channel, Model: r.Model, State: r.Circuit, Circuits: r.Circuits,
				CoolingUntil: r.CoolingUntil, Isolation: ch.Isolation,
			})
		}
	}
	return writeJSON(w, http.StatusOK, map[string][]breakerView{"breakers": views})
}

// resetBreaker closes a route's circuits and ends its account's isolation.
func (s *Server) resetBreaker(w http.ResponseWriter, c *call) error {
	group, channel, model := c.names[0], c.names[1], c.names[2]
	why := struct {
		Reason string `json:"reason"`
	}{}
	if err := c.readOptional(&why); err != nil {
		return err
	}
	if err := reasonable(why.Reason); err != nil {
		return err
	}
	table, now := s.Generation().Table, s.Now()
	before := findBreaker(table, group, channel, model, now)
	ended, err := table.Reset(group, channel, model, now)
	if errors.Is(err, route.ErrNotFound) {
		return missing("%s", err)
	}
	if err != nil {
		return err
	}
	ctx, cancel := c.changing()
	defer cancel()
	after := findBreaker(table, group, channel, model, s.Now())
	if err := s.record(ctx, c, "breaker/"+group+"/"+channel+"/"+model, before, after, why.Reason); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct {
		Group   string `json:"group"`
		Channel string `json:"channel"`
		Model   string `json:"model"`
		Ended   bool   `json:"ended"` // there was an open circuit or an isolation
	}{group, channel, model, ended})
}

// findBreaker returns how a route's circuits are; nil where it has never been used.
func findBreaker(t *route.Table, group, channel, model string, now time.Time) any {
	list := t.Channels(now)
	for i := range list {
		if list[i].Channel.Group.Name != group || list[i].Channel.Name != channel {
			continue
		}
		ch := viewChannel(&list[i])
		for _, r := range ch.Models {
			if r.Model == model {
				return breakerView{
					Group: group, Channel: channel, Model: model, State: r.Circuit, Circuits: r.Circuits,
					CoolingUntil: r.CoolingUntil, Isolation: ch.Isolation,
				}
			}
		}
	}
	return nil
}
