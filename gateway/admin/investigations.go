package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

type investigationView struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Scope    string     `json:"scope"`
	Cause    string     `json:"cause"`
	OpenedAt time.Time  `json:"opened_at"`
	ClosedAt *time.Time `json:"closed_at"`
	ClosedBy *string    `json:"closed_by"`
	Note     *string    `json:"note"`
}

func viewInvestigation(i *storage.Investigation) *investigationView {
	return &investigationView{
		ID: i.ID, Kind: i.Kind, Scope: i.Scope, Cause: i.Cause, OpenedAt: i.OpenedAt.UTC(),
		ClosedAt: timeOrNull(i.ClosedAt), ClosedBy: textOrNull(i.ClosedBy), Note: textOrNull(i.Note),
	}
}

// investigations lists what a person should look into: those not closed, or with state=all
// every one.
func (s *Server) investigations(w http.ResponseWriter, c *call) error {
	q, err := c.parameters("state")
	if err != nil {
		return err
	}
	state := q.Get("state")
	if state != "" && state != "open" && state != "all" {
		return bad("state", "state: allowed are open (the default) and all")
	}
	list, err := s.DB.Investigations(c.Context(), state != "all")
	if err != nil {
		return err
	}
	views := make([]*investigationView, len(list))
	for i := range list {
		views[i] = viewInvestigation(&list[i])
	}
	return writeJSON(w, http.StatusOK, map[string][]*investigationView{"investigations": views})
}

func (s *Server) closeInvestigation(w http.ResponseWriter, c *call) error {
	body := struct {
		Note string `json:"note"`
	}{}
	if err := c.readOptional(&body); err != nil {
		return err
	}
	if len(body.Note) > maxReason {
		return bad("note", "note is too long: at most %d bytes are allowed", maxReason)
	}
	ctx, cancel := c.changing()
	defer cancel()
	closed, err := s.DB.CloseInvestigation(ctx, c.names[0], c.who, body.Note)
	if errors.Is(err, storage.ErrNotFound) {
		return missing("no investigation %q is open", c.names[0])
	}
	if err != nil {
		return err
	}
	before := closed
	before.ClosedAt, before.ClosedBy, before.Note = time.Time{}, "", ""
	if err := s.record(ctx, c, "investigation/"+closed.ID, viewInvestigation(&before), viewInvestigation(&closed), body.Note); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewInvestigation(&closed))
}
