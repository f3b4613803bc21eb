package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
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
		return ext, interlock.BadParam(name, "must be an object")
	}
	ext.rest = v
	want := func(v json.Value, is bool, key, kind string) json.Value {
		if v.IsNull() {
			return nil
		}
		if !is && err == nil {
			err = interlock.BadParam(name+"."+key, "must be "+kind)
		}
		return v
	}
	for key, v := range v.Members() {
		switch string(key) {
		case "generationConfig":
			ext.generation = want(v, v.IsObject(), "generationConfig", "an object")
		case "toolConfig":
			ext.toolConfig = want(v, v.IsObject(), "toolConfig", "an object")
			calling := ext.toolConfig.Get("functionCallingConfig")
			ext.calling = want(calling, calling.IsObject(), "toolConfig.functionCallingConfig", "an object")
		case "tools":
			ext.tools = want(v, v.IsArray(), "tools", "an array")
		case "safetySettings":
			ext.safety = want(v, v.IsArray(), "safetySettings", "an array")
		case "contents", "model", "systemInstruction", "system_instruction":
			return ext, interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		}
	}
	if ext.tools.Empty() {
		ext.tools = nil
	}
	return ext, err
}

// appendRest appends the members that have no place elsewhere.
func (e *extension) appendRest(b []byte) []byte {
	for key, v := range e.rest.Members() {
		switch string(key) {
		case "generationConfig", "toolConfig", "tools", "safetySettings":
			continue
		}
		if !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return b
}

// appendMembers appends an object's members but one to the object that b ends in.
func appendMembers(b []byte, object json.Value, but string) []byte {
	for key, v := range object.Members() {
		if string(key) != but && !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return b
}
