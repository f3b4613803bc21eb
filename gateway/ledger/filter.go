package ledger

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Filter selects requests. Empty fields select all.
type Filter struct {
	Key        string
	Model      string // requested or answered
	Terminal   Opt[failure.Terminal]
	Class      Opt[failure.Class] // of any attempt
	Group      string             // of any attempt
	Channel    string             // of any attempt; "NAME" or "GROUP/NAME"
	Since      time.Time          // received then or later
	Until      time.Time          // received before
	UserAction string
	Alias      string
	Cursor     string // the Next of the page before
	Limit      int    // 1 to 1000; 0 means 100
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

var filterNames = []string{
	"key", "model", "terminal", "class", "group", "channel", "since", "until", "user_action", "alias", "cursor", "limit",
}

// FilterError says what is wrong with a query's filter. It is the caller's fault.
type FilterError struct {
	Name    string // of the parameter
	Message string // what is wrong, and what is allowed
}

func (e *FilterError) Error() string { return e.Message }

// ParseFilter reads a filter from a query. An unknown name or a bad value is a
// [*FilterError] that says what is allowed. A parameter without a value selects nothing
// less, but for terminal: its empty value means requests that are still running.
func ParseFilter(q url.Values) (Filter, error) {
	var f Filter
	for _, name := range slices.Sorted(mapsKeys(q)) {
		values := q[name]
		if len(values) != 1 {
			return Filter{}, &FilterError{name, fmt.Sprintf("filter %q is given %d times: allowed is once", name, len(values))}
		}
		if err := f.set(name, values[0]); err != nil {
			return Filter{}, err
		}
	}
	return f, nil
}

func mapsKeys(q url.Values) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range q {
			if !yield(k) {
				return
			}
		}
	}
}

func (f *Filter) set(name, v string) error {
	bad := func(allowed string) error {
		return &FilterError{name, fmt.Sprintf("filter %s=%q: allowed is %s", name, clip(v, 80), allowed)}
	}
	switch name {
	case "key":
		f.Key = v
	case "model":
		f.Model = v
	case "group":
		f.Group = v
	case "channel":
		f.Channel = v
	case "user_action":
		f.UserAction = v
	case "alias":
		f.Alias = v
	case "terminal":
		t, ok := failure.ParseTerminal(v)
		if !ok {
			return bad(words(failure.Success, failure.Interrupted) + ", or nothing for requests still running")
		}
		f.Terminal = Some(t)
	case "class":
		c, ok := failure.ParseClass(v)
		if !ok && v != "" {
			return bad(words(failure.ClientInvalid, failure.Unknown))
		}
		f.Class = Opt[failure.Class]{c, ok}
	case "since", "until":
		t, err := parseTime(v)
		if err != nil {
			return bad("a time such as 2026-11-30T12:00:00Z")
		}
		if name == "since" {
			f.Since = t
		} else {
			f.Until = t
		}
	case "cursor":
		if _, err := parseCursor(v); v != "" && err != nil {
			return bad("the next of the page before")
		}
		f.Cursor = v
	case "limit":
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxLimit {
			return bad(fmt.Sprintf("a number from 1 to %d", maxLimit))
		}
		f.Limit = n
	default:
		return &FilterError{name, fmt.Sprintf("unknown filter %q: allowed are %s", clip(name, 80), strings.Join(filterNames, ", "))}
	}
	return nil
}

func parseTime(v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
		return t, nil
	}
	// An unescaped + of an offset arrives as a space.
	if t, err := time.Parse(time.RFC3339Nano, strings.Replace(v, " ", "+", 1)); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, v)
}

func words[T interface {
	~uint8
	String() string
}](from, to T) string {
	var all []string
	for v := from; v <= to; v++ {
		all = append(all, v.String())
	}
	return strings.Join(all, ", ")
}

// matches reports whether the filter selects a record. The query that found the record
// may have been wider.
func (f *Filter) matches(r *Record) bool {
	switch {
	case f.Key != "" && r.Key != f.Key,
		f.Model != "" && r.RequestedModel != clip(f.Model, maxCallerText) && r.AnsweredModel != f.Model,
		f.Terminal.Known && r.Terminal != f.Terminal.Value,
		f.Alias != "" && r.Alias != f.Alias,
		f.UserAction != "" && r.UserAction != clip(f.UserAction, maxCallerText),
		!f.Since.IsZero() && r.ReceivedAt.Before(f.Since),
		!f.Until.IsZero() && !r.ReceivedAt.Before(f.Until):
		return false
	}
	return (!f.Class.Known || anyAttempt(r, func(a *Attempt) bool { return a.Class == f.Class.Value })) &&
		(f.Group == "" && f.Channel == "" || anyAttempt(r, f.matchesRoute))
}

// matchesRoute: one attempt must have both the group and the channel.
func (f *Filter) matchesRoute(a *Attempt) bool {
	return (f.Group == "" || a.Group == f.Group) &&
		(f.Channel == "" || a.Channel == f.Channel || a.Group+"/"+a.Channel == f.Channel)
}

func anyAttempt(r *Record, is func(*Attempt) bool) bool {
	for i := range r.Attempts {
		if is(&r.Attempts[i]) {
			return true
		}
	}
	return false
}

// A cursor is the row number of the last request of a page.

func cursorAt(seq int64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(seq))) // #nosec G115 -- not negative
}

func parseCursor(s string) (int64, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 8 || b[0] > 127 {
		return 0, errors.New("ledger: not a cursor")
	}
	return int64(binary.BigEndian.Uint64(b)), nil // #nosec G115 -- checked above
}
