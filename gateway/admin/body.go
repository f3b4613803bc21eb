package admin

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// moment is a time in a body; null is none.
type moment struct{ time.Time }

// UnmarshalJSON refuses in the API's words.
func (m *moment) UnmarshalJSON(b []byte) error {
	var text *string
	if err := json.Unmarshal(b, &text); err == nil {
		if text == nil {
			return nil
		}
		if t, err := time.Parse(time.RFC3339, *text); err == nil {
			m.Time = t
			return nil
		}
	}
	return bad("until", "until: an RFC 3339 time such as 2026-01-02T15:04:05Z, or null, is expected")
}

// repeated finds a name that an object of the body gives twice, escapes decoded: which of the
// two would hold is nowhere said. In the outermost object case makes no difference, as it makes
// none to what is read from there. The body is whole JSON; "" means that there is none.
func repeated(b []byte) (name string, found bool) {
	type object struct {
		names  map[string]bool // nil in a list
		inside bool            // the next token is a value
	}
	var open []object
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return "", false
		}
		last := len(open) - 1
		switch t {
		case json.Delim('}'), json.Delim(']'):
			open = open[:last]
			continue
		}
		if last >= 0 && open[last].names != nil {
			o := &open[last]
			if o.inside = !o.inside; o.inside {
				name := t.(string) // the decoder takes nothing else there
				same := name
				if last == 0 {
					same = strings.ToLower(name)
				}
				if o.names[same] {
					return name, true
				}
				o.names[same] = true
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			open = append(open, object{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		}
	}
}
