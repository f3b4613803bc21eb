package fault

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

const (
	maxSampleDepth = 16
	maxSampleNodes = 10_000
)

// sample gives a small instance of a JSON Schema: the first choice wherever
// there is one, every property, one element. It knows the keywords that
// structured outputs allow; what it does not know it does not honour.
func sample(schema json.RawMessage) string {
	s := &sampler{root: schema, left: maxSampleNodes}
	out, err := json.Marshal(s.value(schema, 0))
	if err != nil {
		return "{}"
	}
	return string(out)
}

type sampler struct {
	root json.RawMessage
	left int // nodes it may still make
}

type schemaShape struct {
	Type       json.RawMessage            `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	MinItems   int                        `json:"minItems"`
	MinLength  int                        `json:"minLength"`
	Minimum    float64                    `json:"minimum"`
	Format     string                     `json:"format"`
}

func (s *sampler) value(schema json.RawMessage, depth int) any {
	shape := decoded[schemaShape](schema)
	if s.left--; depth > maxSampleDepth || s.left < 0 {
		return nil
	}
	for _, choice := range [][]json.RawMessage{shape.AnyOf, shape.OneOf, shape.AllOf} {
		if len(choice) > 0 {
			return s.value(choice[0], depth+1)
		}
	}
	switch {
	case shape.Ref != "":
		return s.value(s.resolve(shape.Ref), depth+1)
	case shape.Const != nil:
		return shape.Const
	case len(shape.Enum) > 0:
		return shape.Enum[0]
	}
	return s.typed(shape, depth)
}

func (s *sampler) typed(shape schemaShape, depth int) any {
	kind := decoded[string](shape.Type)
	if kinds := decoded[[]string](shape.Type); len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "array":
		out := make([]any, min(max(shape.MinItems, 1), 1000))
		for i := range out {
			out[i] = s.value(shape.Items, depth+1)
		}
		return out
	case "string":
		return sampleText(shape)
	case "integer", "number":
		return shape.Minimum
	case "boolean":
		return true
	case "null":
		return nil
	default:
		return s.object(shape, depth)
	}
}

func (s *sampler) object(shape schemaShape, depth int) any {
	names := make([]string, 0, len(shape.Properties))
	for name := range shape.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	out := map[string]any{}
	for _, name := range names {
		if depth > maxSampleDepth/2 && !slices.Contains(shape.Required, name) {
			continue // a recursive schema ends where it may
		}
		out[name] = s.value(shape.Properties[name], depth+1)
	}
	return out
}

// sampleText is a text of the format and length asked for.
func sampleText(shape schemaShape) string {
	text := map[string]string{
		"date":      "2025-01-31",
		"date-time": "2025-01-31T12:00:00Z",
		"time":      "12:00:00Z",
		"duration":  "PT1H",
		"email":     "someone@example.com",
		"hostname":  "example.com",
		"ipv4":      "192.0.2.1",
		"ipv6":      "2001:db8::1",
		"uuid":      "00000000-0000-4000-8000-000000000000",
		"uri":       "https://example.com/",
	}[shape.Format]
	if text == "" {
		text = "text"
	}
	if short := min(shape.MinLength, 10_000) - len(text); short > 0 {
		text += strings.Repeat("x", short)
	}
	return text
}

// resolve follows a reference within the schema, as "#/$defs/step".
func (s *sampler) resolve(ref string) json.RawMessage {
	at := s.root
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#"), "/") {
		if name == "" {
			continue
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		at = decoded[map[string]json.RawMessage](at)[name]
	}
	return at
}
