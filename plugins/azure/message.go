package azure

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// messages writes the conversation. It passes as it is but for what only another provider or the
// gateway understands, and the role developer where the API does not have it yet, or has models of
// many makers behind it.
func (w *writer) messages(v json.Value) error {
	w.b = json.AppendKey(w.b, "messages")
	developer := w.s.api != models && w.s.since(hasDeveloper)
	if !bytes.Contains(v, []byte(`provider_data`)) && !bytes.Contains(v, []byte(`reasoning_content`)) &&
		(developer || !bytes.Contains(v, []byte(`developer`))) && !bytes.Contains(v, []byte(`\u`)) {
		w.b = append(w.b, v...)
		return nil
	}
	w.b = append(w.b, '[')
	for m := range v.Items() {
		w.b = json.AppendComma(w.b)
		if !m.IsObject() {
			return interlock.BadParam("messages", "must be an array of objects")
		}
		w.b = append(w.b, '{')
		for key, v := range m.Members() {
			switch string(key) {
			case "provider_data", "reasoning_content":
				continue
			case "role":
				if !developer && v.Is("developer") {
					v = json.Value(`"system"`)
				}
			}
			w.b = append(append(json.AppendQuote(json.AppendComma(w.b), key), ':'), v...)
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
	return nil
}
