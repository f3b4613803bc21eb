package gemini

import (
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// openAPI turns a JSON Schema into the provider's older dialect, a part of OpenAPI 3.0: a type of
// several is one that may be nullable, const is an enum of one, and what only describes or
// forbids further members is left out. What the dialect cannot say is refused.
func openAPI(schema json.Value, at string) (json.Value, error) {
	return appendOpenAPI(nil, schema, at)
}

// keywords are what does not stay as it is.
var keywords = [...]struct {
	word string
	do   keyword
}{
	{"type", asType},
	{"const", asConst},
	{"properties", inMembers},
	{"items", inside},
	{"anyOf", inItems},
	{"oneOf", inItems},
	{"$schema", drop},
	{"$id", drop},
	{"$comment", drop},
	{"additionalProperties", drop},
	{"strict", drop},
	{"deprecated", drop},
	{"$ref", refuse},
	{"$defs", refuse},
	{"definitions", refuse},
	{"allOf", refuse},
	{"not", refuse},
	{"if", refuse},
	{"patternProperties", refuse},
	{"dependentRequired", refuse},
	{"prefixItems", refuse},
	{"contains", refuse},
}

type keyword uint8

const (
	keep      keyword = iota
	drop              // it says nothing that matters
	refuse            // the dialect has no word for it
	asType            // maybe one of several
	asConst           // an enum of one
	inside            // a schema
	inItems           // an array of schemas: anyOf
	inMembers         // an object of schemas
)

func appendOpenAPI(b []byte, schema json.Value, at string) ([]byte, error) {
	if !schema.IsObject() {
		return nil, unsaid(at, "a schema that is no object")
	}
	b = char(b, '{')
	var err error
	for key, v := range schema.Members() {
		do := keep
		for i := range keywords {
			if keywords[i].word == string(key) {
				do = keywords[i].do
			}
		}
		switch do {
		case drop:
			continue
		case refuse:
			return nil, unsaid(at, string(key))
		case asConst:
			b = char(join(array(b, "enum"), v), ']')
			continue
		case inItems:
			b, err = appendEach(array(b, "anyOf"), v, at, ']')
		case asType:
			b, err = appendType(b, v, at)
		default:
			b = char(json.AppendQuote(next(b), key), ':')
			switch do {
			case inside:
				b, err = appendOpenAPI(b, v, at)
			case inMembers:
				b, err = appendEach(char(b, '{'), v, at, '}')
			default:
				b = join(b, v)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return char(b, '}'), nil
}

// appendEach appends the schemas of an array or of an object's members, and the end of the list.
func appendEach(b []byte, v json.Value, at string, end byte) ([]byte, error) {
	var err error
	for item := range v.Items() {
		if b, err = appendOpenAPI(next(b), item, at); err != nil {
			return nil, err
		}
	}
	for name, property := range v.Members() {
		if b, err = appendOpenAPI(char(json.AppendQuote(next(b), name), ':'), property, at); err != nil {
			return nil, err
		}
	}
	return char(b, end), nil
}

func appendType(b []byte, v json.Value, at string) ([]byte, error) {
	var one json.Value
	if v.IsString() {
		one = v
	}
	for item := range v.Items() {
		switch {
		case is(item, "null"):
			b = json.AppendBool(b, "nullable", true)
		case one != nil:
			return nil, unsaid(at, "several types")
		default:
			one = item
		}
	}
	return json.AppendMember(b, "type", one), nil
}

func unsaid(at, what string) error {
	return unsupported(at, "the provider's dialect of schemas, which this channel is configured for, cannot say: "+what)
}
