package gemini

import (
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extension is the caller's object "gemini": members of a generateContent request. What it says
// goes before what is made of OpenAI's parameters.
type extension struct {
	generation json.Value // objects or nil
	toolConfig json.Value
	calling    json.Value // toolConfig.functionCallingConfig
	tools      json.Value // an array or nil, to be appended to
	safety     json.Value
	rest       json.Value // the whole object: all other members are the request's as they are
}

func readExtension(v json.Value) (ext extension, err error) {
	if v == nil {
		return ext, nil
	}
	if !v.IsObject() {
		return ext, badParam(name, "must be an object")
	}
	ext.rest = v
	for _, key := range [...]string{"contents", "model", "systemInstruction", "system_instruction"} {
		if v.Get(key) != nil {
			return ext, unsupported(name+"."+key, "is made of the request itself")
		}
	}
	if ext.generation, err = member(v, "generationConfig", json.Object); err != nil {
		return ext, err
	}
	if ext.toolConfig, err = member(v, "toolConfig", json.Object); err != nil {
		return ext, err
	}
	if ext.calling, err = member(ext.toolConfig, "functionCallingConfig", json.Object); err != nil {
		return ext, err
	}
	if ext.safety, err = member(v, "safetySettings", json.Array); err != nil {
		return ext, err
	}
	if ext.tools, err = member(v, "tools", json.Array); ext.tools.Empty() {
		ext.tools = nil
	}
	return ext, err
}

// member is the extension's member with that key, which has to be of that kind; nil when absent
// or null.
func member(v json.Value, key string, kind json.Kind) (json.Value, error) {
	v = v.Get(key)
	switch {
	case v.IsNull():
		return nil, nil
	case v.Kind() == kind:
		return v, nil
	case kind == json.Array:
		return nil, badParam(name+"."+key, "must be an array")
	}
	return nil, badParam(name+"."+key, "must be an object")
}

// appendRest appends the members that have no place elsewhere.
func (e *extension) appendRest(b []byte) []byte {
	for key, v := range e.rest.Members() {
		switch string(key) {
		case "generationConfig", "toolConfig", "tools", "safetySettings":
			continue
		}
		if !v.IsNull() {
			b = join(char(json.AppendQuote(next(b), key), ':'), v)
		}
	}
	return b
}

// appendMembers appends an object's members but one to the object that b ends in.
func appendMembers(b []byte, object json.Value, but string) []byte {
	for key, v := range object.Members() {
		if string(key) != but && !v.IsNull() {
			b = join(char(json.AppendQuote(next(b), key), ':'), v)
		}
	}
	return b
}
