package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Page is a part of a list, newest first. Next is empty on the last one.
type Page struct {
	Requests []*Record
	Next     string
}

// List returns one page of the requests that the filter selects, newest first, without
// decisions. Pages follow each other without gap or repetition while requests come in:
// what is received after the first page was read is on none of them.
func (r *Reader) List(ctx context.Context, f Filter) (Page, error) {
	limit := f.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if limit < 0 || limit > maxLimit {
		return Page{}, &FilterError{"limit", fmt.Sprintf("limit %d: allowed is 1 to %d", f.Limit, maxLimit)}
	}
	return r.page(ctx, f, limit, false)
}

// page reads up to limit requests. It may look through many rows to find them; ctx bounds
// that.
func (r *Reader) page(ctx context.Context, f Filter, limit int, decisions bool) (Page, error) {
	tx, err := r.begin(ctx)
	if err != nil {
		return Page{}, err
	}
	defer tx.Rollback() //nolint:errcheck // reading only
	s, err := r.search(ctx, tx, f)
	if err != nil {
		return Page{}, err
	}
	var all []found
	for len(all) <= limit {
		atOnce := max(limit+1-len(all), 200)
		part, err := s.next(ctx, r, tx, atOnce, decisions)
		if err != nil {
			return Page{}, err
		}
		for _, one := range part {
			if f.matches(one.rec) {
				all = append(all, one)
			}
		}
		if len(part) < atOnce {
			break
		}
	}
	var p Page
	if len(all) > limit {
		all = all[:limit]
		p.Next = cursorAt(all[limit-1].seq)
	}
	if err := r.outcomes(ctx, tx, all); err != nil {
		return Page{}, err
	}
	for _, one := range all {
		p.Requests = append(p.Requests, one.rec)
	}
	return p, nil
}

// search is a filter as a query over rows: it finds all that the filter selects, and may
// find more. What the head of a body holds is compared in place.
type search struct {
	from   string
	where  []string
	args   []any
	before int64 // seen down to here
}

func (r *Reader) search(ctx context.Context, tx *sql.Tx, f Filter) (*search, error) {
	s := &search{from: "requests r", before: math.MaxInt64}
	if f.Cursor != "" {
		seq, err := parseCursor(f.Cursor)
		if err != nil {
			return nil, &FilterError{"cursor", "the cursor is not the next of a page before"}
		}
		s.before = seq
	}
	if !f.Until.IsZero() {
		s.before = min(s.before, placeAt(f.Until.UnixMilli()+1))
	}
	if !f.Since.IsZero() {
		s.add("r.seq >= ?", placeAt(f.Since.UnixMilli()))
	}
	switch running := f.Terminal.Known && f.Terminal.Value == failure.Running; {
	case f.UserAction != "":
		own := int64(-1)
		if seq, err := r.find(ctx, tx, f.UserAction); err == nil {
			own = seq
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		s.add("r.seq IN (SELECT seq FROM actions WHERE action = ? UNION SELECT ?)", clip(f.UserAction, maxCallerText), own)
	case f.Class.Known && f.Class.Value != failure.None, f.Terminal.Known && !running && f.Terminal.Value != failure.Success:
		s.from = "troubled t CROSS JOIN requests r ON r.seq = t.seq"
	case running:
		s.add("r.state = ? AND r.seq >= (SELECT value FROM meta WHERE name = 'open_floor')", stateOpen)
	}
	return s, r.narrow(ctx, tx, s, f)
}

// narrow adds the conditions on the head.
func (r *Reader) narrow(ctx context.Context, tx *sql.Tx, s *search, f Filter) error {
	for _, c := range []struct {
		value string
		where string
	}{
		{f.Key, at(headKey)},
		{f.Alias, at(headAlias)},
		{f.Model, at(headRequested) + " OR " + at(headAnswered)},
		{f.Terminal.Value.String(), at(headTerminal)},
		// Only the first attempt's are in the head.
		{f.Group, at(headGroup) + " OR r.state <> 3"},
		{f.Channel, at(headChannel) + " OR r.state <> 3"},
	} {
		if c.value == "" || strings.Contains(c.value, "/") && c.value == f.Channel {
			continue
		}
		var id int64 = wordInline
		err := tx.QueryRowContext(ctx, "SELECT id FROM words WHERE word = ?", c.value).Scan(&id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		number := []byte{byte(id >> 16), byte(id >> 8), byte(id)}
		args := make([]any, strings.Count(c.where, "?"))
		for i := range args {
			args[i] = number
		}
		s.add("("+c.where+")", args...)
	}
	return nil
}

func at(head int) string {
	return fmt.Sprintf("substr(r.body, %d, 3) IN (?, x'ffffff')", head+1)
}

func (s *search) add(where string, args ...any) {
	s.where = append(s.where, where)
	s.args = append(s.args, args...)
}

// next reads the next rows down.
func (s *search) next(ctx context.Context, r *Reader, tx *sql.Tx, limit int, decisions bool) ([]found, error) {
	query := "SELECT r.seq, r.body FROM " + s.from + " WHERE "
	order := "r.seq"
	if strings.HasPrefix(s.from, "troubled") {
		order = "t.seq"
	}
	query += strings.Join(append([]string{order + " < ?"}, s.where...), " AND ") + " ORDER BY " + order + " DESC LIMIT ?"
	args := append(append([]any{s.before}, s.args...), limit)
	part, err := r.rows(ctx, tx, decisions, query, args...)
	if err != nil {
		return nil, err
	}
	if n := len(part); n > 0 {
		s.before = part[n-1].seq
	}
	return part, nil
}
