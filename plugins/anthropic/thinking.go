package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// The types of the items of provider_data. An unsigned one only says whose the reasoning's bytes
// before a signed one are.
const (
	typeThinking = "thinking"
	typeRedacted = "redacted_thinking"
	typeUnsigned = "unsigned"
)

// position is where between text and calls an item stood: behind that many bytes of text, and
// that many calls. A missing one is 0: most think first.
type position struct{ text, calls int }

func (p *position) read(item json.Value) {
	for key, v := range item.Members() {
		n, _ := v.Uint()
		switch string(key) {
		case "text_bytes":
			p.text = int(min(n, 1<<30))
		case "calls":
			p.calls = int(min(n, 1<<30))
		}
	}
}

func (p *position) append(b []byte) []byte {
	if p.text > 0 {
		b = json.AppendUint(b, "text_bytes", uint64(p.text))
	}
	if p.calls > 0 {
		b = json.AppendUint(b, "calls", uint64(p.calls))
	}
	return b
}

// newItem begins an item of provider_data.
func newItem(kind string) []byte {
	b := json.AppendText(append(make([]byte, 0, 256), '{'), "provider", name)
	return json.AppendText(b, "type", kind)
}

// thought writes a block of thinking as it came.
func (w *writer) thought(item json.Value, text []byte, at messageIndex) error {
	switch kind := item.Get("type"); {
	case kind.Is(typeThinking):
		signature := item.Get("signature")
		if !signature.IsString() {
			return interlock.BadParam(at.path()+".provider_data", "an item of anthropic's has no signature")
		}
		b := append(w.open(false), `{"type":"thinking","thinking":`...)
		w.b = append(json.AppendMember(json.AppendQuote(b, text), "signature", signature), '}')
	case kind.Is(typeRedacted):
		data := item.Get("data")
		if !data.IsString() {
			return interlock.BadParam(at.path()+".provider_data", "an item of anthropic's has no data")
		}
		w.b = append(append(append(w.open(false), `{"type":"redacted_thinking","data":`...), data...), '}')
	}
	return nil
}
