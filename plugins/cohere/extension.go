package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extension is the caller's object "cohere": members of the provider's request. What it says goes
// before what is made of OpenAI's parameters.
type extension struct {
	all       json.Value // the whole object, or nil
	documents json.Value // an array with something in it, or nil: behind those of the messages
}

func readExtension(v json.Value, s *settings) (ext extension, err error) {
	if v == nil {
		return ext, nil
	}
	if !v.IsObject() {
		return ext, interlock.BadParam(name, "must be an object")
	}
	ext.all = v
	for key, m := range v.Members() {
		switch string(key) {
		case "model", "messages", "stream", "tools", "texts", "inputs", "images", "embedding_types":
			return ext, interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		case "safety_mode":
			if s.safetyMode != nil {
				return ext, interlock.Unsupported(name+".safety_mode", "is set by the gateway's operator")
			}
		case "documents":
			if ext.documents = m; !m.IsNull() && !m.IsArray() {
				return ext, interlock.BadParam(name+".documents", "must be an array")
			}
		}
	}
	if ext.documents.Empty() {
		ext.documents = nil
	}
	return ext, nil
}

// has says whether the caller gives the member of the provider's request himself. A null is given
// too: nothing is sent then.
func (e *extension) has(key string) bool { return e.all != nil && e.all.Get(key) != nil }

// append appends the members that have no place elsewhere.
func (e *extension) append(b []byte) []byte {
	for key, v := range e.all.Members() {
		if string(key) != "documents" && !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return b
}
