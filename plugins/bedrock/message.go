package bedrock

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// writer writes the messages. Messages of one role that follow each other become one, as the
// provider wants it: results of tools, and what the user says behind them.
type writer struct {
	b      []byte
	vendor string
	plan   *plan
	side   side
	nested bool // in a tool's result: the parts are its own

	names     []byte // of documents, each behind a zero byte
	documents uint64
}

// side is who has the open message.
type side uint8

const (
	nobody side = iota
	user
	assistant
)

func appendMessages(b []byte, c *interlock.Call, r *chat.Request, p *plan, ext *extension) ([]byte, error) {
	w := writer{b: append(json.AppendKey(b, "messages"), '['), vendor: vendor(c.Model), plan: p}
	for i := range r.Messages {
		if err := w.message(&r.Messages[i], "messages["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
	}
	if w.side == nobody {
		return nil, interlock.BadParam("messages", "must have a message that is not of the system")
	}
	w.b = append(w.b, "]}]"...)
	return appendSystem(w.b, r, ext), nil
}

// appendSystem gathers what the system and the developer say, wherever they say it: the provider
// has one place for it.
func appendSystem(b []byte, r *chat.Request, ext *extension) []byte {
	from := len(b)
	b = append(json.AppendKey(b, "system"), '[')
	empty := len(b)
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != chat.System && m.Role != chat.Developer {
			continue
		}
		for k := range m.Parts {
			if p := &m.Parts[k]; !blank(p.Text) {
				b = appendText(json.AppendComma(b), p.Text)
				b = appendCachePoint(b, p)
			}
		}
	}
	for block := range ext.system.Items() {
		b = append(json.AppendComma(b), block...)
	}
	if len(b) == empty {
		return b[:from]
	}
	return append(b, ']')
}

func appendText(b []byte, text json.Value) []byte {
	return append(append(append(b, `{"text":`...), text...), '}')
}

// open begins a block of that side's message, and the message where it is not open.
func (w *writer) open(isUser bool) []byte {
	if w.nested {
		return json.AppendComma(w.b)
	}
	want, role := assistant, "assistant"
	if isUser {
		want, role = user, "user"
	}
	if w.side == want {
		return json.AppendComma(w.b)
	}
	if w.side != nobody {
		w.b = append(w.b, "]},"...)
	}
	w.side = want
	return append(append(append(w.b, `{"role":"`...), role...), `","content":[`...)
}

func (w *writer) message(m *chat.Message, at string) error {
	switch m.Role {
	case chat.User:
		from := len(w.b)
		if err := w.parts(m, at); err != nil {
			return err
		}
		if len(w.b) == from {
			return interlock.BadParam(at+".content", "must not be blank: this model's provider refuses it")
		}
	case chat.ToolRole:
		return w.result(m, at)
	case chat.Assistant:
		if err := w.reasoningBlocks(m, at); err != nil {
			return err
		}
		if err := w.parts(m, at); err != nil {
			return err
		}
		if !m.Refusal.Empty() && !blank(m.Refusal) {
			w.b = appendText(w.open(false), m.Refusal)
		}
		for i := range m.ToolCalls {
			if err := w.call(&m.ToolCalls[i], at+".tool_calls["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) parts(m *chat.Message, at string) error {
	for i := range m.Parts {
		if err := w.part(m, i, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) part(m *chat.Message, i int, at string) error {
	p := &m.Parts[i]
	here := func() string { return at + ".content[" + strconv.Itoa(i) + "]" }
	isUser := m.Role != chat.Assistant
	switch p.Kind {
	case chat.Text:
		if blank(p.Text) {
			return nil
		}
		w.b = appendText(w.open(isUser), p.Text)
	default:
		if err := w.media(p, here); err != nil {
			return err
		}
	}
	if !w.nested {
		w.b = appendCachePoint(w.b, p)
	}
	return nil
}

// appendCachePoint marks the end of what is to be cached, where the part has a cache_control.
func appendCachePoint(b []byte, p *chat.Part) []byte {
	control := other(p, "cache_control")
	if !control.IsObject() {
		return b
	}
	b = append(json.AppendComma(b), `{"cachePoint":{"type":"default"`...)
	if ttl := control.Get("ttl"); ttl.IsString() {
		b = json.AppendMember(b, "ttl", ttl)
	}
	return append(b, "}}"...)
}

// cachePointOf marks the end of a tool's result, in which there is no place for the mark itself.
func (w *writer) cachePointOf(m *chat.Message) {
	for i := len(m.Parts) - 1; i >= 0; i-- {
		if other(&m.Parts[i], "cache_control").IsObject() {
			w.b = appendCachePoint(w.b, &m.Parts[i])
			return
		}
	}
}

func other(p *chat.Part, key string) (v json.Value) {
	for i := range p.Others {
		if p.Others[i].Key == key {
			v = p.Others[i].Value
		}
	}
	return v
}
