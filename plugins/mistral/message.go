package mistral

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// bridge is what the assistant says between the results of tools and the user's next words. The
// provider refuses a user's message behind a tool's, and an assistant's that says nothing.
const bridge = `{"role":"assistant","content":"OK"}`

// writer writes the messages. What the system says comes first: the provider refuses it behind an
// assistant's message and a tool's.
type writer struct {
	b     []byte
	calls map[string]json.Value // the functions' names by the IDs of their calls
	index int                   // of the message, for what is wrong with it
}

func (w *writer) messages(list []chat.Message) error {
	w.b = append(json.AppendKey(w.b, "messages"), '[')
	for i := range list {
		if m := &list[i]; m.Role == chat.System || m.Role == chat.Developer {
			w.b = append(json.AppendComma(w.b), `{"role":"system"`...)
			w.text(m)
			w.b = append(w.b, '}')
		}
	}
	before := chat.Role(0)
	for i := range list {
		m := &list[i]
		w.index = i
		wrote, err := false, error(nil)
		switch m.Role {
		case chat.User:
			if before == chat.ToolRole {
				w.b = append(json.AppendComma(w.b), bridge...)
			}
			wrote, err = true, w.user(m)
		case chat.Assistant:
			wrote, err = w.assistant(m, i == len(list)-1)
		case chat.ToolRole:
			wrote, err = true, w.result(m)
		}
		if err != nil {
			return err
		}
		if wrote {
			before = m.Role
		}
	}
	w.b = append(w.b, ']')
	return nil
}

// here names a member of the message.
func (w *writer) here(member string) string {
	return "messages[" + strconv.Itoa(w.index) + "]" + member
}

func (w *writer) part(i int) string { return w.here(".content[" + strconv.Itoa(i) + "]") }

func appendText(b []byte, text json.Value) []byte {
	return append(append(append(b, `{"type":"text","text":`...), text...), '}')
}

// text writes the content of a message that has only text: one text is a string.
func (w *writer) text(m *chat.Message) {
	w.b = json.AppendKey(w.b, "content")
	if len(m.Parts) == 1 {
		w.b = append(w.b, m.Parts[0].Text...)
		return
	}
	w.b = append(w.b, '[')
	for i := range m.Parts {
		w.b = appendText(json.AppendComma(w.b), m.Parts[i].Text)
	}
	w.b = append(w.b, ']')
}

// content writes content of any kind.
func (w *writer) content(m *chat.Message) error {
	if len(m.Parts) == 1 && m.Parts[0].Kind == chat.Text {
		w.text(m)
		return nil
	}
	w.b = append(json.AppendKey(w.b, "content"), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		w.b = json.AppendComma(w.b)
		if p.Kind == chat.Text {
			w.b = appendText(w.b, p.Text)
		} else if err := w.media(p, i); err != nil {
			return err
		}
	}
	w.b = append(w.b, ']')
	return nil
}

func (w *writer) user(m *chat.Message) error {
	w.b = append(json.AppendComma(w.b), `{"role":"user"`...)
	if err := w.content(m); err != nil {
		return err
	}
	w.b = append(w.b, '}')
	return nil
}

// assistant writes what a model said, with the reasoning that was this provider's. A message that
// says nothing is left out, since the provider refuses it. One that ends the conversation is the
// beginning of the answer.
func (w *writer) assistant(m *chat.Message, last bool) (wrote bool, err error) {
	thoughts, err := w.thoughts(m)
	if err != nil {
		return false, err
	}
	texts := 0
	var only json.Value
	for i := range m.Parts {
		if text := m.Parts[i].Text; !text.Empty() {
			texts++
			only = text
		}
	}
	if texts == 0 && !m.Refusal.Empty() {
		texts, only = 1, m.Refusal
	}
	if texts == 0 && thoughts == nil && len(m.ToolCalls) == 0 {
		return false, nil
	}
	w.b = append(json.AppendComma(w.b), `{"role":"assistant","content":`...)
	switch {
	case texts == 0 && thoughts == nil:
		w.b = append(w.b, `""`...)
	case texts == 1 && thoughts == nil:
		w.b = append(w.b, only...)
	default:
		w.b = append(append(w.b, '['), thoughts...)
		if texts == 1 {
			w.b = appendText(json.AppendComma(w.b), only)
		} else {
			for i := range m.Parts {
				if text := m.Parts[i].Text; !text.Empty() {
					w.b = appendText(json.AppendComma(w.b), text)
				}
			}
		}
		w.b = append(w.b, ']')
	}
	if len(m.ToolCalls) > 0 {
		w.call(m)
	} else if last && texts > 0 {
		w.b = json.AppendBool(w.b, "prefix", true)
	}
	w.b = append(w.b, '}')
	return true, nil
}

func (w *writer) call(m *chat.Message) {
	if w.calls == nil {
		w.calls = make(map[string]json.Value)
	}
	w.b = append(json.AppendKey(w.b, "tool_calls"), '[')
	for i := range m.ToolCalls {
		t := &m.ToolCalls[i]
		w.calls[t.ID.String()] = t.Name
		args := t.Arguments
		if args.Empty() {
			args = json.Value(`"{}"`)
		}
		w.b = append(json.AppendComma(w.b), `{"id":`...)
		w.b = append(appendID(w.b, t.ID), `,"type":"function","function":{"name":`...)
		w.b = json.AppendMember(append(w.b, t.Name...), "arguments", args)
		w.b = append(w.b, "}}"...)
	}
	w.b = append(w.b, ']')
}

// result writes the message of a tool. Which function's it is the provider may know too.
func (w *writer) result(m *chat.Message) error {
	w.b = append(json.AppendComma(w.b), `{"role":"tool"`...)
	if err := w.content(m); err != nil {
		return err
	}
	w.b = appendID(json.AppendKey(w.b, "tool_call_id"), m.ToolCallID)
	w.b = json.AppendMember(w.b, "name", w.calls[m.ToolCallID.String()])
	w.b = append(w.b, '}')
	return nil
}

// thoughts returns the reasoning that this provider's models gave, as parts of content.
func (w *writer) thoughts(m *chat.Message) (parts []byte, err error) {
	for item, text := range m.Own(name) {
		if !item.Get("type").Is(typeThinking) {
			continue
		}
		signature := item.Get("signature")
		if !signature.IsNull() && !signature.IsString() {
			return nil, interlock.BadParam(w.here(".provider_data"), "an item of mistral's is not what it was")
		}
		if len(text) == 0 && signature.IsNull() {
			continue
		}
		if parts != nil {
			parts = append(parts, ',')
		}
		parts = append(parts, `{"type":"thinking","thinking":[{"type":"text","text":`...)
		parts = append(json.AppendQuote(parts, text), "}]"...)
		if !signature.IsNull() {
			parts = json.AppendMember(parts, "signature", signature)
		}
		parts = append(parts, '}')
	}
	return parts, nil
}
