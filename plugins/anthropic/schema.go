package anthropic

import (
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// nativeFormat is output_config's format for a schema. The provider takes no schema whose objects
// may have members that it does not name: objects that leave it open are closed. What satisfies
// that schema satisfies the caller's.
func nativeFormat(schema json.Value) json.Value {
	b := append(make([]byte, 0, len(schema)+128), `{"type":"json_schema","schema":`...)
	return append(appendClosed(b, schema), '}')
}

func appendClosed(b []byte, schema json.Value) []byte {
	if !schema.IsObject() {
		return append(b, schema...)
	}
	b = append(b, '{')
	isObject, told := false, false
	for key, v := range schema.Members() {
		b = appendMember(b, key, nil)
		switch string(key) {
		case "type":
			isObject = v.Is("object")
			for kind := range v.Items() {
				isObject = isObject || kind.Is("object")
			}
			b = append(b, v...)
		case "additionalProperties":
			told = true
			b = appendClosed(b, v)
		case "properties", "$defs", "definitions":
			b = appendEach(b, v)
		case "items", "prefixItems", "anyOf", "oneOf": // in allOf, each would forbid the others' members
			b = appendList(b, v)
		default:
			b = append(b, v...)
		}
	}
	if isObject && !told {
		b = json.AppendBool(b, "additionalProperties", false)
	}
	return append(b, '}')
}

// appendEach is for an object whose members are schemas.
func appendEach(b []byte, v json.Value) []byte {
	if !v.IsObject() {
		return append(b, v...)
	}
	b = append(b, '{')
	for key, v := range v.Members() {
		b = appendClosed(appendMember(b, key, nil), v)
	}
	return append(b, '}')
}

// appendList is for a schema or an array of schemas.
func appendList(b []byte, v json.Value) []byte {
	if !v.IsArray() {
		return appendClosed(b, v)
	}
	b = append(b, '[')
	for v := range v.Items() {
		b = appendClosed(json.AppendComma(b), v)
	}
	return append(b, ']')
}
