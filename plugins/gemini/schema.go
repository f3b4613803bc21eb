package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// openAPI turns a JSON Schema into the provider's older dialect, a part of OpenAPI 3.0: types in
// capitals, null as nullable, const as an enum of one. What only describes or loosens nothing is
// left out; what the dialect cannot say is refused.
func openAPI(schema json.Value, at string) (json.Value, error) {
	b, err := appendOpenAPI(nil, schema, at)
	return b, err
}

func appendOpenAPI(b []byte, schema json.Value, at string) ([]byte, error) {
	if !schema.IsObject() {
		return nil, unsaid(at, "a schema that is no object")
	}
	b = append(b, '{')
	nullable := false
	var err error
	for key, v := range schema.Members() {
		switch k := string(key); k {
		case "type":
			if b, nullable, err = appendType(b, v, nullable, at); err != nil {
				return nil, err
			}
		case "properties":
			b = append(json.AppendKey(b, k), '{')
			for name, property := range v.Members() {
				b = append(json.AppendQuote(json.AppendComma(b), name), ':')
				if b, err = appendOpenAPI(b, property, at); err != nil {
					return nil, err
				}
			}
			b = append(b, '}')
		case "items":
			if b, err = appendOpenAPI(json.AppendKey(b, k), v, at); err != nil {
				return nil, err
			}
		case "anyOf", "oneOf":
			if b, nullable, err = appendAnyOf(b, v, nullable, at); err != nil {
				return nil, err
			}
		case "enum":
			b, nullable = appendEnum(b, v, nullable)
		case "const":
			b = append(append(append(json.AppendKey(b, "enum"), '['), v...), ']')
		case "nullable":
			nullable = nullable || v.True()
		case "title", "description", "format", "required", "minItems", "maxItems", "minProperties", "maxProperties",
			"minLength", "maxLength", "pattern", "minimum", "maximum", "example", "default", "propertyOrdering":
			b = json.AppendMember(b, k, v)
		case "$schema", "$id", "$comment", "examples", "additionalProperties", "strict", "deprecated", "readOnly", "writeOnly":
		default:
			return nil, unsaid(at, k)
		}
	}
	if nullable {
		b = json.AppendBool(b, "nullable", true)
	}
	return append(b, '}'), nil
}

func unsaid(at, what string) error {
	return interlock.Unsupported(at, "the provider's dialect of schemas, which this channel is configured for, cannot say: "+what)
}

func appendType(b []byte, v json.Value, nullable bool, at string) ([]byte, bool, error) {
	word := v
	if v.IsArray() {
		word = nil
		for item := range v.Items() {
			switch {
			case item.Is("null"):
				nullable = true
			case word != nil:
				return nil, false, unsaid(at, "several types")
			default:
				word = item
			}
		}
	}
	text := append([]byte(nil), word.Text()...)
	for i, c := range text {
		if c-'a' < 26 {
			text[i] -= 'a' - 'A'
		}
	}
	return json.AppendText(b, "type", text), nullable, nil
}

func appendAnyOf(b []byte, v json.Value, nullable bool, at string) ([]byte, bool, error) {
	b = append(json.AppendKey(b, "anyOf"), '[')
	var err error
	for item := range v.Items() {
		if item.Get("type").Is("null") {
			nullable = true
			continue
		}
		if b, err = appendOpenAPI(json.AppendComma(b), item, at); err != nil {
			return nil, false, err
		}
	}
	return append(b, ']'), nullable, nil
}

func appendEnum(b []byte, v json.Value, nullable bool) ([]byte, bool) {
	b = append(json.AppendKey(b, "enum"), '[')
	for item := range v.Items() {
		if item.IsNull() {
			nullable = true
			continue
		}
		b = append(json.AppendComma(b), item...)
	}
	return append(b, ']'), nullable
}
