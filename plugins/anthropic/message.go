package anthropic

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
	side   side
	nested bool // in a tool's result: the parts are its own
}

// side is who has the open message.
type side uint8

const (
	nobody side = iota
	user
	assistant
)

// messageIndex says which message it is. The path is put together for an error only.
type messageIndex int

func (i messageIndex) path() string { return "messages[" + strconv.Itoa(int(i)) + "]" }

func appendMessages(b []byte, r *chat.Request, ext *extension) ([]byte, error) {
	b = appendSystem(b, r, ext)
	w := writer{b: append(json.AppendKey(b, "messages"), '[')}
	for i := range r.Messages {
		if err := w.message(&r.Messages[i], messageIndex(i)); err != nil {
			return nil, err
		}
	}
	if w.side == nobody {
		return nil, interlock.BadParam("messages", "must have a message that is not of the system")
	}
	return append(w.b, "]}]"...), nil
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
				b = appendText(json.AppendComma(b), p.Text, cacheControl(p.Others))
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

func appendText(b []byte, text, control json.Value) []byte {
	b = append(append(b, `{"type":"text","text":`...), text...)
	return append(json.AppendMember(b, "cache_control", control), '}')
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

func (w *writer) message(m *chat.Message, at messageIndex) error {
	switch m.Role {
	case chat.User:
		from := len(w.b)
		if err := w.parts(m, at); err != nil {
			return err
		}
		if len(w.b) == from {
			return interlock.BadParam(at.path()+".content", "must not be blank: this model's provider refuses it")
		}
	case chat.ToolRole:
		return w.result(m, at)
	case chat.Assistant:
		return w.assistant(m, at)
	}
	return nil
}

func (w *writer) parts(m *chat.Message, at messageIndex) error {
	for i := range m.Parts {
		if err := w.part(m, i, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) part(m *chat.Message, i int, at messageIndex) error {
	p := &m.Parts[i]
	control := cacheControl(p.Others)
	if w.nested {
		control = nil
	}
	if p.Kind != chat.Text {
		return w.media(p, control, func() string { return at.path() + ".content[" + strconv.Itoa(i) + "]" })
	}
	if !blank(p.Text) {
		w.b = appendText(w.open(m.Role != chat.Assistant), p.Text, control)
	}
	return nil
}

// assistant writes what the model said: its thinking, its text and its calls, in the order in
// which it said them where the items of provider_data tell.
func (w *writer) assistant(m *chat.Message, at messageIndex) error {
	var text []byte // of the one part there is
	said, calls, split := 0, 0, false
	for item, thinking := range m.Own(name) {
		var place position
		place.read(item)
		if place.text > said && len(m.Parts) == 1 && !isHandle(m.Parts[0].Text) {
			if text == nil {
				text = m.Parts[0].Text.Text()
			}
			if place.text <= len(text) && isBoundary(text, place.text) {
				w.piece(text[said:place.text])
				said, split = place.text, true
			}
		}
		for ; calls < min(place.calls, len(m.ToolCalls)); calls++ {
			if err := w.callAt(m, calls, at); err != nil {
				return err
			}
		}
		if err := w.thought(item, thinking, at); err != nil {
			return err
		}
	}
	if !split {
		if err := w.parts(m, at); err != nil {
			return err
		}
	} else {
		w.piece(text[said:])
	}
	if !m.Refusal.Empty() && !blank(m.Refusal) {
		w.b = appendText(w.open(false), m.Refusal, nil)
	}
	for ; calls < len(m.ToolCalls); calls++ {
		if err := w.callAt(m, calls, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) callAt(m *chat.Message, i int, at messageIndex) error {
	return w.call(&m.ToolCalls[i], func() string { return at.path() + ".tool_calls[" + strconv.Itoa(i) + "]" })
}

// piece writes a part of the assistant's text.
func (w *writer) piece(text []byte) {
	if quoted := json.Value(json.AppendQuote(nil, text)); !blank(quoted) {
		w.b = appendText(w.open(false), quoted, nil)
	}
}

// isBoundary says whether a character of the text ends there.
func isBoundary(text []byte, at int) bool { return at == len(text) || text[at]&0xc0 != 0x80 }
