package cohere

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// writer writes the messages. What the system says is one message, the first: the provider wants
// it there.
type writer struct {
	b         []byte
	documents []byte // of the user's messages, each behind a comma
	index     int    // of the message, for what is wrong with it
}

func (w *writer) messages(list []chat.Message) error {
	w.b = append(json.AppendKey(w.b, "messages"), '[')
	w.system(list)
	for i := range list {
		m := &list[i]
		w.index = i
		var err error
		switch m.Role {
		case chat.User:
			err = w.user(m)
		case chat.Assistant:
			err = w.assistant(m)
		case chat.ToolRole:
			err = w.result(m)
		}
		if err != nil {
			return err
		}
	}
	w.b = append(w.b, ']')
	return nil
}

func (w *writer) system(list []chat.Message) {
	texts := 0
	var only json.Value
	for i := range list {
		if m := &list[i]; m.Role == chat.System || m.Role == chat.Developer {
			for k := range m.Parts {
				texts++
				only = m.Parts[k].Text
			}
		}
	}
	if texts == 0 {
		return
	}
	w.b = append(w.b, `{"role":"system","content":`...)
	if texts == 1 {
		w.b = append(append(w.b, only...), '}')
		return
	}
	w.b = append(w.b, '[')
	for i := range list {
		if m := &list[i]; m.Role == chat.System || m.Role == chat.Developer {
			for k := range m.Parts {
				w.b = appendText(json.AppendComma(w.b), m.Parts[k].Text)
			}
		}
	}
	w.b = append(w.b, "]}"...)
}

// part names a part of the message.
func (w *writer) part(i int, member string) string {
	return "messages[" + strconv.Itoa(w.index) + "].content[" + strconv.Itoa(i) + "]" + member
}

func appendText(b []byte, text json.Value) []byte {
	return append(append(append(b, `{"type":"text","text":`...), text...), '}')
}

func (w *writer) user(m *chat.Message) error {
	w.b = append(json.AppendComma(w.b), `{"role":"user","content":`...)
	if len(m.Parts) == 1 && m.Parts[0].Kind == chat.Text {
		w.b = append(append(w.b, m.Parts[0].Text...), '}')
		return nil
	}
	w.b = append(w.b, '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Text:
			w.b = appendText(json.AppendComma(w.b), p.Text)
		case chat.Image:
			w.b = append(json.AppendComma(w.b), `{"type":"image_url","image_url":{"url":`...)
			if p.URL != nil {
				w.b = append(w.b, p.URL...)
			} else {
				w.b = appendDataURL(w.b, p.MediaType, p.Data)
			}
			w.b = append(json.AppendMember(w.b, "detail", p.Detail), "}}"...)
		case chat.File:
			d, err := w.document(p, i)
			if err != nil {
				return err
			}
			w.documents = append(append(w.documents, ','), d...)
		default:
			return interlock.Unsupported(w.part(i, ".type"), "this model's provider does not take this type of content")
		}
	}
	w.b = append(w.b, "]}"...)
	return nil
}

// appendDocuments appends documents: those of the user's messages and those of the extension.
func (w *writer) appendDocuments(b []byte, more json.Value) []byte {
	if len(w.documents) == 0 && more == nil {
		return b
	}
	b = append(json.AppendKey(b, "documents"), '[')
	if len(w.documents) > 0 {
		b = append(b, w.documents[1:]...)
	}
	for d := range more.Items() {
		b = append(json.AppendComma(b), d...)
	}
	return append(b, ']')
}

// assistant writes what a model said, with the reasoning and the plan that were this provider's. A
// message that says nothing is left out, since the provider refuses it.
func (w *writer) assistant(m *chat.Message) error {
	thoughts, plan, err := w.own(m)
	if err != nil {
		return err
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
	if texts == 0 && thoughts == nil && plan == nil && len(m.ToolCalls) == 0 {
		return nil
	}
	w.b = append(json.AppendComma(w.b), `{"role":"assistant"`...)
	switch {
	case texts == 0 && thoughts == nil:
	case texts == 1 && thoughts == nil:
		w.b = json.AppendMember(w.b, "content", only)
	default:
		w.b = append(append(json.AppendKey(w.b, "content"), '['), thoughts...)
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
	w.b = json.AppendMember(w.b, "tool_plan", plan)
	if len(m.ToolCalls) > 0 {
		w.calls(m)
	}
	w.b = append(w.b, '}')
	return nil
}

func (w *writer) calls(m *chat.Message) {
	w.b = append(json.AppendKey(w.b, "tool_calls"), '[')
	for i := range m.ToolCalls {
		t := &m.ToolCalls[i]
		args := t.Arguments
		if args.Empty() {
			args = json.Value(`"{}"`)
		}
		w.b = append(append(json.AppendComma(w.b), `{"id":`...), t.ID...)
		w.b = append(append(w.b, `,"type":"function","function":{"name":`...), t.Name...)
		w.b = append(json.AppendMember(w.b, "arguments", args), "}}"...)
	}
	w.b = append(w.b, ']')
}

// own returns the reasoning that this provider's models gave, as parts of content, and the plan,
// a string; nil where there is none.
func (w *writer) own(m *chat.Message) (thoughts []byte, plan json.Value, err error) {
	for item, text := range m.Own(name) {
		switch kind := item.Get("type"); {
		case kind.Is(typeThinking):
			if len(text) == 0 {
				continue
			}
			if thoughts != nil {
				thoughts = append(thoughts, ',')
			}
			thoughts = append(thoughts, `{"type":"thinking","thinking":`...)
			thoughts = append(json.AppendQuote(thoughts, text), '}')
		case kind.Is(typePlan):
			if plan = item.Get("text"); !plan.IsString() {
				return nil, nil, interlock.BadParam("messages["+strconv.Itoa(w.index)+"].provider_data", "an item of cohere's is not what it was")
			}
		}
	}
	return thoughts, plan, nil
}

// result writes the message of a tool: texts, and documents that an answer can cite.
func (w *writer) result(m *chat.Message) error {
	w.b = append(append(json.AppendComma(w.b), `{"role":"tool","tool_call_id":`...), m.ToolCallID...)
	w.b = json.AppendKey(w.b, "content")
	if len(m.Parts) == 1 && m.Parts[0].Kind == chat.Text {
		w.b = append(append(w.b, m.Parts[0].Text...), '}')
		return nil
	}
	w.b = append(w.b, '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Text:
			w.b = appendText(json.AppendComma(w.b), p.Text)
		case chat.File:
			d, err := w.document(p, i)
			if err != nil {
				return err
			}
			w.b = append(append(append(json.AppendComma(w.b), `{"type":"document","document":`...), d...), '}')
		default:
			return interlock.Unsupported(w.part(i, ".type"), "this model's provider takes text in the result of a tool")
		}
	}
	w.b = append(w.b, "]}"...)
	return nil
}
