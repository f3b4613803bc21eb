package ollama

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// writer writes the messages of a conversation. Ollama's have one text each, and images beside it:
// what is several parts with the caller becomes several messages of the same role.
type writer struct {
	b     []byte
	names map[string]json.Value // of the tools that were called, by the call's ID
}

func (w *writer) messages(r *chat.Request) error {
	for i := range r.Messages {
		if err := w.message(&r.Messages[i], i); err != nil {
			return err
		}
	}
	return nil
}

var roles = [...]string{chat.System: "system", chat.Developer: "system", chat.User: "user", chat.Assistant: "assistant", chat.ToolRole: "tool"}

func (w *writer) message(m *chat.Message, at int) error {
	if m.Role == chat.Assistant && len(m.Parts) == 0 && !m.Refusal.Empty() {
		m.Parts = []chat.Part{{Kind: chat.Text, Text: m.Refusal}}
	}
	for i := 0; ; {
		w.b = append(json.AppendComma(w.b), `{"role":"`...)
		w.b = append(append(w.b, roles[m.Role]...), '"')
		next, err := w.parts(m, at, i)
		if err != nil {
			return err
		}
		if m.Role == chat.Assistant && i == 0 && !m.Reasoning.Empty() {
			w.b = json.AppendMember(w.b, "thinking", m.Reasoning)
		}
		i = next
		if m.Role == chat.ToolRole {
			w.answered(m)
		}
		if i >= len(m.Parts) {
			break
		}
		w.b = append(w.b, '}')
	}
	if err := w.calls(m, at); err != nil {
		return err
	}
	w.b = append(w.b, '}')
	return nil
}

// parts writes the parts from the one at from that fit into one message, a text and the images
// around it, and returns where the next begins.
func (w *writer) parts(m *chat.Message, at, from int) (next int, err error) {
	var text json.Value
	images := 0
	for next = from; next < len(m.Parts); next++ {
		p := &m.Parts[next]
		switch {
		case p.Kind == chat.Text && text != nil:
			goto full
		case p.Kind == chat.Text:
			text = p.Text
		case p.Kind == chat.Image && p.Data != nil:
			images++
		default:
			return 0, refusePart(p, here(at, next))
		}
	}
full:
	if text == nil {
		text = json.Value(`""`)
	}
	w.b = json.AppendMember(w.b, "content", text)
	if images > 0 {
		w.b = append(json.AppendKey(w.b, "images"), '[')
		for i := from; i < next; i++ {
			if m.Parts[i].Kind == chat.Image {
				w.b = append(json.AppendComma(w.b), m.Parts[i].Data...)
			}
		}
		w.b = append(w.b, ']')
	}
	return next, nil
}

func here(message, part int) string {
	return "messages[" + strconv.Itoa(message) + "].content[" + strconv.Itoa(part) + "]"
}

// refusePart says why a part cannot be carried.
func refusePart(p *chat.Part, at string) error {
	switch p.Kind {
	case chat.Image:
		return interlock.Unsupported(at+".image_url.url", "this model's provider takes images as data: URLs only")
	case chat.Audio:
		return interlock.Unsupported(at+".input_audio", "this model's provider takes text and images only")
	default:
		return interlock.Unsupported(at+".file", "this model's provider takes text and images only")
	}
}

// calls writes the calls that the assistant made.
func (w *writer) calls(m *chat.Message, at int) error {
	if len(m.ToolCalls) == 0 {
		return nil
	}
	w.b = append(json.AppendKey(w.b, "tool_calls"), '[')
	for i := range m.ToolCalls {
		t := &m.ToolCalls[i]
		args, ok := t.ArgumentsJSON()
		if !ok {
			return interlock.BadParam("messages["+strconv.Itoa(at)+"].tool_calls["+strconv.Itoa(i)+"].function.arguments", "must be a JSON object in a string")
		}
		if w.names == nil {
			w.names = make(map[string]json.Value)
		}
		w.names[t.ID.String()] = t.Name
		w.b = json.AppendMember(append(json.AppendComma(w.b), '{'), "id", t.ID)
		w.b = append(json.AppendKey(w.b, "function"), '{')
		w.b = json.AppendMember(w.b, "name", t.Name)
		w.b = append(json.AppendMember(w.b, "arguments", args), "}}"...)
	}
	w.b = append(w.b, ']')
	return nil
}

// answered says which tool's result a message is: some templates want the name, others the ID.
func (w *writer) answered(m *chat.Message) {
	w.b = json.AppendMember(w.b, "tool_name", w.names[m.ToolCallID.String()])
	w.b = json.AppendMember(w.b, "tool_call_id", m.ToolCallID)
}
