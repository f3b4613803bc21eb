package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extension is the caller's object "bedrock": members of a Converse request. What it says goes
// before what is made of OpenAI's parameters.
type extension struct {
	additional json.Value // objects or nil
	inference  json.Value
	tools      json.Value // arrays or nil, to be appended to
	system     json.Value
	toolChoice json.Value // an object or nil
	rest       json.Value // the whole object: all other members are the request's as they are
}

func readExtension(v json.Value, s *settings) (ext extension, err error) {
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
		case "additionalModelRequestFields":
			ext.additional = want(v, v.IsObject(), "additionalModelRequestFields", "an object")
		case "inferenceConfig":
			ext.inference = want(v, v.IsObject(), "inferenceConfig", "an object")
		case "system":
			ext.system = want(v, v.IsArray(), "system", "an array")
		case "toolConfig":
			if want(v, v.IsObject(), "toolConfig", "an object") == nil {
				continue
			}
			for key, v := range v.Members() {
				switch string(key) {
				case "tools":
					ext.tools = want(v, v.IsArray(), "toolConfig.tools", "an array")
				case "toolChoice":
					ext.toolChoice = want(v, v.IsObject(), "toolConfig.toolChoice", "an object")
				default:
					return ext, interlock.Unsupported(name+".toolConfig", "has a member that is not known")
				}
			}
		case "messages", "modelId":
			return ext, interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		case "guardrailConfig":
			if s.guardrail != nil {
				return ext, interlock.Unsupported(name+".guardrailConfig", "is set by the gateway's operator")
			}
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
		case "additionalModelRequestFields", "inferenceConfig", "system", "toolConfig":
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
		b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
	}
	return b
}
