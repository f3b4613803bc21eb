package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

const maxReason = 1000 // bytes

// reasonable refuses a reason that is not a short text.
func reasonable(reason string) error {
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return bad("reason", "reason is too long: at most %d bytes are allowed", maxReason)
	}
	return nil
}

// record keeps a change that has been made. Without the record the change still holds, and
// the answer says so: undoing a kill because of a full disk would be worse.
func (s *Server) record(ctx context.Context, c *call, what string, before, after any, reason string) error {
	ch := storage.Change{At: s.Now(), Who: c.who, What: what, Reason: reason}
	var err error
	if ch.Before, err = asJSON(before); err == nil {
		if ch.After, err = asJSON(after); err == nil {
			_, err = s.DB.AddChange(ctx, ch)
		}
	}
	s.log.Info("changed by an operator", "who", c.who, "what", what, "reason", reason)
	if err != nil {
		s.log.Error("a change was made and could not be recorded", "who", c.who, "what", what, "error", err.Error())
		return &refusal{
			status: http.StatusInternalServerError, code: changeNotRecorded,
			message: "the change is in force, but could not be recorded; the gateway's log says why",
		}
	}
	return nil
}

// asJSON encodes what there was; "" for nothing.
func asJSON(v any) (string, error) {
	if r := reflect.ValueOf(v); !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil() {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

type changeView struct {
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	Who    string          `json:"who"`
	What   string          `json:"what"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Reason *string         `json:"reason"`
}

func rawOrNull(s string) json.RawMessage {
	if !json.Valid([]byte(s)) { // "" included
		return json.RawMessage("null")
	}
	return json.RawMessage(s)
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// changes lists what operators changed, newest first.
func (s *Server) changes(w http.ResponseWriter, c *call) error {
	q, err := c.parameters("cursor", "limit")
	if err != nil {
		return err
	}
	before, limit := int64(0), defaultPage
	if v := q.Get("cursor"); v != "" {
		if before, err = strconv.ParseInt(v, 10, 64); err != nil || before < 1 {
			return bad("cursor", "cursor: allowed is the next of the page before")
		}
	}
	if v := q.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > maxPage {
			return bad("limit", "limit: allowed is a number from 1 to %d", maxPage)
		}
	}
	list, err := s.DB.Changes(c.Context(), before, limit+1) // one more says whether there is a next page
	if err != nil {
		return err
	}
	next := ""
	if len(list) > limit {
		list = list[:limit]
		next = strconv.FormatInt(list[limit-1].ID, 10)
	}
	views := make([]changeView, len(list))
	for i := range list {
		ch := &list[i]
		views[i] = changeView{
			ID: ch.ID, At: ch.At.UTC(), Who: ch.Who, What: ch.What, Reason: textOrNull(ch.Reason),
			Before: rawOrNull(ch.Before), After: rawOrNull(ch.After),
		}
	}
	return writeJSON(w, http.StatusOK, struct {
		Changes []changeView `json:"changes"`
		Next    string       `json:"next"`
	}{views, next})
}
