package gemini

import (
	"strconv"

	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// turn is who speaks in an element of contents. Results of functions are the user's too, but have
// an element of their own: the one behind the calls.
type turn uint8

const (
	turnNone turn = iota
	turnUser
	turnModel
	turnResults
)

// writer writes contents. Messages that follow each other in the same turn become one element.
type writer struct {
	b      []byte
	s      *settings
	model  string
	turn   turn
	system []byte // parts of the system instruction
	calls  map[string]callRef
	order  int // of the next call
	index  int // of the message, for what is wrong with it
}

// callRef is what a tool's result has to know of its call.
type callRef struct {
	name  json.Value
	order int  // of all calls in the conversation
	own   bool // the ID is the provider's
}

func (w *writer) messages(list []chat.Message) error {
	said := false
	for i := range list {
		said = said || list[i].Role != chat.System && list[i].Role != chat.Developer
	}
	asUser := !said || systemless(w.model)
	for i := range list {
		if m := &list[i]; m.Role == chat.System || m.Role == chat.Developer {
			w.instruct(m, asUser)
		}
	}
	for i := 0; i < len(list); i++ {
		m := &list[i]
		w.index = i
		var err error
		switch m.Role {
		case chat.User:
			err = w.user(m)
		case chat.Assistant:
			err = w.assistant(m)
		case chat.ToolRole:
			end := i + 1
			for end < len(list) && list[end].Role == chat.ToolRole {
				end++
			}
			err = w.results(list[i:end], i)
			i = end - 1
		}
		if err != nil {
			return err
		}
	}
	w.close()
	return nil
}

// here names a member of the message.
func (w *writer) here(member string) string {
	return "messages[" + strconv.Itoa(w.index) + "]" + member
}

// element names an element of a list of the message's.
func (w *writer) element(list string, i int, member string) string {
	return w.here(list + "[" + strconv.Itoa(i) + "]" + member)
}

// part begins a part of that turn's: what is appended to the slice returned becomes w.b.
func (w *writer) part(t turn) []byte {
	if w.turn != t {
		w.close()
		role := `{"role":"user","parts":[`
		if t == turnModel {
			role = `{"role":"model","parts":[`
		}
		w.b = raw(next(w.b), role)
		w.turn = t
	}
	return next(w.b)
}

func (w *writer) close() {
	if w.turn != turnNone {
		w.b = raw(w.b, "]}")
		w.turn = turnNone
	}
}

// text writes a part of text, a JSON string.
func (w *writer) text(t turn, text json.Value) {
	w.b = char(json.AppendMember(char(w.part(t), '{'), "text", text), '}')
}

func (w *writer) instruct(m *chat.Message, asUser bool) {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind != chat.Text || p.Text.Empty():
		case asUser:
			w.text(turnUser, p.Text)
		default:
			w.system = char(json.AppendMember(char(comma(w.system), '{'), "text", p.Text), '}')
		}
	}
}

// comma is json.AppendComma for a list that is written without its bracket.
func comma(b []byte) []byte {
	if len(b) > 0 {
		b = char(b, ',')
	}
	return b
}

func (w *writer) user(m *chat.Message) error {
	wrote := false
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == chat.Text {
			if p.Text.Empty() && (wrote || i < len(m.Parts)-1) {
				continue // the provider refuses an empty text; where there is no other it shall
			}
			w.text(turnUser, p.Text)
		} else {
			b, err := w.media(w.part(turnUser), p, i)
			if err != nil {
				return err
			}
			w.b = b
		}
		wrote = true
	}
	return nil
}

// result is a tool's, with its place among the calls.
type result struct {
	ref callRef
	m   *chat.Message
	at  int
}

func (r *result) before(o *result) bool {
	return r.ref.order < o.ref.order || r.ref.order == o.ref.order && r.at < o.at
}

// sortResults is Shell's sort, since package slices makes a module larger.
func sortResults(all []result) {
	for gap := len(all) / 2; gap > 0; gap /= 2 {
		for i := gap; i < len(all); i++ {
			r := all[i]
			j := i
			for ; j >= gap && r.before(&all[j-gap]); j -= gap {
				all[j] = all[j-gap]
			}
			all[j] = r
		}
	}
}

// results writes the results of tools that follow each other, in the order of their calls.
func (w *writer) results(list []chat.Message, from int) error {
	all := make([]result, 0, len(list))
	for i := range list {
		m := &list[i]
		ref, ok := w.calls[m.ToolCallID.String()]
		if !ok {
			w.index = from + i
			return badParam(w.here(".tool_call_id"), "is not the id of an earlier tool call, whose function the provider wants to know")
		}
		all = append(all, result{ref, m, from + i})
	}
	sortResults(all)
	nested := modern(w.model)
	for i := range all {
		if err := w.result(&all[i], nested); err != nil {
			return err
		}
	}
	if nested {
		return nil
	}
	for i := range all {
		r := &all[i]
		b, wrote, err := w.resultMedia(r, w.part(turnResults))
		if err != nil {
			return err
		}
		if wrote {
			w.b = b
		}
	}
	return nil
}

func (w *writer) result(r *result, nested bool) error {
	b := raw(w.part(turnResults), `{"functionResponse":{`)
	if r.ref.own {
		b = json.AppendMember(b, "id", r.m.ToolCallID)
	}
	b = json.AppendMember(b, "name", r.ref.name)
	b = object(b, "response")
	texts := 0
	for i := range r.m.Parts {
		if r.m.Parts[i].Kind == chat.Text {
			texts++
		}
	}
	if texts > 0 {
		b = json.AppendKey(b, "result")
		if texts > 1 {
			b = char(b, '[')
		}
		for i := range r.m.Parts {
			if p := &r.m.Parts[i]; p.Kind == chat.Text {
				if texts > 1 {
					b = next(b)
				}
				b = join(b, p.Text)
			}
		}
		if texts > 1 {
			b = char(b, ']')
		}
	}
	b = char(b, '}')
	if nested && texts < len(r.m.Parts) {
		var err error
		if b, _, err = w.resultMedia(r, array(b, "parts")); err != nil {
			return err
		}
		b = char(b, ']')
	}
	w.b = raw(b, "}}")
	return nil
}

// resultMedia appends the parts of a result that are no text.
func (w *writer) resultMedia(r *result, b []byte) ([]byte, bool, error) {
	wrote := false
	for i := range r.m.Parts {
		p := &r.m.Parts[i]
		if p.Kind == chat.Text {
			continue
		}
		if wrote {
			b = char(b, ',')
		}
		var err error
		w.index = r.at
		b, err = w.media(b, p, i)
		if err != nil {
			return nil, false, err
		}
		wrote = true
	}
	return b, wrote, nil
}
