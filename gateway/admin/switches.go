package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

type switchView struct {
	Kind   string     `json:"kind"`
	Name   string     `json:"name"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"` // null: until it is cleared
	Who    string     `json:"who"`
	At     time.Time  `json:"at"`
}

func viewSwitch(sw *storage.Switch) *switchView {
	if sw == nil {
		return nil
	}
	return &switchView{Kind: sw.Kind, Name: sw.Name, Reason: sw.Reason, Until: timeOrNull(sw.Until), Who: sw.Who, At: sw.At.UTC()}
}

func (s *Server) listSwitches(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	views := []*switchView{}
	for _, sw := range s.State.Switches().Set().List(s.Now()) {
		views = append(views, viewSwitch(&sw))
	}
	return writeJSON(w, http.StatusOK, map[string][]*switchView{"switches": views})
}

func (s *Server) showSwitch(w http.ResponseWriter, c *call) error {
	if _, err := c.parameters(); err != nil {
		return err
	}
	kind, name := c.names[0], c.names[1]
	sw := s.State.Switches().Set().Off(kind, name, s.Now())
	if sw == nil {
		return missing("the switch %s/%s is not set", kind, name)
	}
	return writeJSON(w, http.StatusOK, viewSwitch(sw))
}

// setSwitch kills: from the answer on no attempt starts on what the switch names.
func (s *Server) setSwitch(w http.ResponseWriter, c *call) error {
	kind, name := c.names[0], c.names[1]
	body := struct {
		Reason string `json:"reason"`
		Until  moment `json:"until"`
	}{}
	if err := c.read(&body); err != nil {
		return err
	}
	if body.Reason == "" {
		return bad("reason", "reason is required: why is %s/%s switched off?", kind, name)
	}
	if err := reasonable(body.Reason); err != nil {
		return err
	}
	now := s.Now()
	sw := storage.Switch{Kind: kind, Name: name, Reason: body.Reason, Until: body.Until.Time, Who: c.who, At: now}
	ctx, cancel := c.changing()
	defer cancel()
	before, err := s.State.Switches().Put(ctx, sw, s.Generation().Table, now)
	switch {
	case errors.Is(err, switches.ErrUnknown):
		return missing("%s", err)
	case errors.Is(err, switches.ErrInvalid):
		return bad("until", "%s", err)
	case err != nil:
		return err
	}
	if err := s.record(ctx, c, "switch/"+kind+"/"+name, viewSwitch(before), viewSwitch(&sw), sw.Reason); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewSwitch(&sw))
}

// clearSwitch restores. It works for a name that the configuration has lost since, too.
func (s *Server) clearSwitch(w http.ResponseWriter, c *call) error {
	kind, name := c.names[0], c.names[1]
	why := struct {
		Reason string `json:"reason"`
	}{}
	if err := c.readOptional(&why); err != nil {
		return err
	}
	if err := reasonable(why.Reason); err != nil {
		return err
	}
	ctx, cancel := c.changing()
	defer cancel()
	was, err := s.State.Switches().Delete(ctx, kind, name)
	if errors.Is(err, switches.ErrUnknown) {
		return missing("the switch %s/%s is not set", kind, name)
	}
	if err != nil {
		return err
	}
	if err := s.record(ctx, c, "switch/"+kind+"/"+name, viewSwitch(&was), nil, why.Reason); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewSwitch(&was))
}
