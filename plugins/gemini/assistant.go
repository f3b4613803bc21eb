package gemini

import (
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// noSignature is what the provider takes in place of a signature for a call that none of its
// models made.
const noSignature = `"skip_thought_signature_validator"`

// kept is an item of provider_data that stands between the texts and the calls of a message.
type kept struct {
	start, size uint64     // bytes of the visible text before the part, and of it
	calls       uint64     // calls before the part
	signature   json.Value // of a text
	part        json.Value // a part of the provider's own, as it was
}

// signed is what is known of a call.
type signed struct {
	signature json.Value
	own       bool
}

// assistant writes what a model said, with the provider's signatures on the parts that they came
// on. Reasoning without a signature is not sent back: the provider makes nothing of it.
func (w *writer) assistant(m *chat.Message) error {
	var between []kept
	var calls map[string]signed
	for item, thought := range m.Own(name) {
		k := kept{}
		var kind, id json.Value
		own := false
		for key, v := range item.Members() {
			switch string(key) {
			case "type":
				kind = v
			case "signature":
				k.signature = v
			case "tool_call_id":
				id = v
			case "own_id":
				own = v.True()
			case "part":
				k.part = v
			case "text_start":
				k.start, _ = v.Uint()
			case "text_bytes":
				k.size, _ = v.Uint()
			case "calls":
				k.calls, _ = v.Uint()
			}
		}
		if !k.signature.IsNull() && !k.signature.IsString() || !k.part.IsNull() && !k.part.IsObject() {
			return badParam(w.here(".provider_data"), "an item of gemini's is not what it was")
		}
		switch {
		case is(kind, typeThought) && k.signature != nil:
			b := json.AppendText(char(w.part(turnModel), '{'), "text", thought)
			b = json.AppendBool(b, "thought", true)
			w.b = char(json.AppendMember(b, "thoughtSignature", k.signature), '}')
		case is(kind, typeCall) && id.IsString():
			if calls == nil {
				calls = make(map[string]signed)
			}
			calls[id.String()] = signed{k.signature, own}
		case is(kind, typeText) && k.signature != nil:
			k.part = nil
			between = append(between, k)
		case is(kind, typePart) && k.part != nil:
			k.signature, k.size = nil, 0
			between = append(between, k)
		}
	}

	text, split := splittable(m, between)
	if !split {
		for i := range m.Parts {
			if !m.Parts[i].Text.Empty() {
				w.text(turnModel, m.Parts[i].Text)
			}
		}
		if len(m.Parts) == 0 && !m.Refusal.Empty() {
			w.text(turnModel, m.Refusal)
		}
	}
	pos, call := uint64(0), 0
	for _, k := range between {
		if split && k.start > pos {
			w.signedText(text[pos:k.start], nil)
			pos = k.start
		}
		for ; uint64(call) < k.calls && call < len(m.ToolCalls); call++ {
			if err := w.call(m, call, calls); err != nil {
				return err
			}
		}
		switch {
		case k.part != nil:
			w.b = join(w.part(turnModel), k.part)
		case split:
			w.signedText(text[pos:pos+k.size], k.signature)
			pos += k.size
		default:
			w.signedText(nil, k.signature)
		}
	}
	if split && pos < uint64(len(text)) {
		w.signedText(text[pos:], nil)
	}
	for ; call < len(m.ToolCalls); call++ {
		if err := w.call(m, call, calls); err != nil {
			return err
		}
	}
	return nil
}

// splittable returns the text of a message with parts to be told apart in it, and whether they
// are in it: a caller may have changed the text, and a large one is not here at all.
func splittable(m *chat.Message, between []kept) (text []byte, ok bool) {
	if len(between) == 0 || len(m.Parts) > 1 {
		return nil, false
	}
	if len(m.Parts) == 1 {
		text = m.Parts[0].Text.Text()
	}
	pos := uint64(0)
	boundary := func(n uint64) bool {
		return n <= uint64(len(text)) && (n == uint64(len(text)) || utf8.RuneStart(text[n]))
	}
	for _, k := range between {
		end := k.start + k.size
		if k.start < pos || end < k.start || !boundary(k.start) || !boundary(end) {
			return nil, false
		}
		pos = end
	}
	return text, true
}

// signedText writes a part of text; signature may be nil.
func (w *writer) signedText(text []byte, signature json.Value) {
	b := json.AppendText(char(w.part(turnModel), '{'), "text", text)
	w.b = char(json.AppendMember(b, "thoughtSignature", signature), '}')
}

func (w *writer) call(m *chat.Message, i int, known map[string]signed) error {
	t := &m.ToolCalls[i]
	args, ok := t.ArgumentsJSON()
	if !ok {
		return badParam(w.element(".tool_calls", i, ".function.arguments"), "must be a JSON object in a string")
	}
	id := t.ID.String()
	s := known[id]
	if w.calls == nil {
		w.calls = make(map[string]callRef)
	}
	w.calls[id] = callRef{t.Name, w.order, s.own}
	w.order++
	b := raw(w.part(turnModel), `{"functionCall":{`)
	if s.own {
		b = json.AppendMember(b, "id", t.ID)
	}
	b = json.AppendMember(b, "name", t.Name)
	b = char(json.AppendMember(b, "args", args), '}')
	if s.signature == nil && i == 0 && modern(w.model) {
		s.signature = json.Value(noSignature)
	}
	w.b = char(json.AppendMember(b, "thoughtSignature", s.signature), '}')
	return nil
}
