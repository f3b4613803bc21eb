package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extension is the caller's object "ollama": members of Ollama's request. What it says goes before
// what is made of OpenAI's parameters.
type extension struct {
	options json.Value // an object or nil
	tools   json.Value // an array or nil, to be appended to
	rest    json.Value // the whole object: all other members are the request's as they are
}

func readExtension(v json.Value) (ext extension, err error) {
	if v == nil {
		return ext, nil
	}
	if !v.IsObject() {
		return ext, interlock.BadParam(name, "must be an object")
	}
	ext.rest = v
	for key, v := range v.Members() {
		switch string(key) {
		case "options":
			if ext.options = v; v.IsNull() {
				ext.options = nil
			} else if !v.IsObject() {
				return ext, interlock.BadParam(name+".options", "must be an object")
			}
		case "tools":
			if ext.tools = v; v.IsNull() {
				ext.tools = nil
			} else if !v.IsArray() {
				return ext, interlock.BadParam(name+".tools", "must be an array")
			}
		case "model", "messages", "input", "stream":
			return ext, interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		}
	}
	return ext, nil
}

// has says whether the extension has a member of that name.
func (e *extension) has(key string) bool { return e.rest.Get(key) != nil }

// appendRest appends the members that have no place elsewhere.
func (e *extension) appendRest(b []byte) []byte {
	for key, v := range e.rest.Members() {
		switch string(key) {
		case "options", "tools":
			continue
		}
		if !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return b
}

// appendMembers appends an object's members to the object that b ends in.
func appendMembers(b []byte, object json.Value) []byte {
	for key, v := range object.Members() {
		if !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return b
}
