package policy

import (
	"encoding/json"
	"math"
	"strconv"
)

// jsonSink writes facts as one JSON object.
type jsonSink struct{ b []byte }

func encodeJSON(in asked) []byte {
	s := &jsonSink{b: make([]byte, 0, 768)}
	s.b = append(s.b, '{')
	in.facts(s)
	s.b = append(s.b, '}')
	return s.b
}

func (s *jsonSink) name(name string) {
	if last := s.b[len(s.b)-1]; last != '{' {
		s.b = append(s.b, ',')
	}
	s.b = append(s.b, '"')
	s.b = append(s.b, name...)
	s.b = append(s.b, '"', ':')
}

func (s *jsonSink) open(name string) {
	s.name(name)
	s.b = append(s.b, '{')
}

func (s *jsonSink) close() { s.b = append(s.b, '}') }

func (s *jsonSink) text(name, value string) {
	s.name(name)
	if plain(value) {
		s.b = append(s.b, '"')
		s.b = append(s.b, value...)
		s.b = append(s.b, '"')
		return
	}
	quoted, err := json.Marshal(value) // a string always marshals
	if err != nil {
		quoted = []byte(`""`)
	}
	s.b = append(s.b, quoted...)
}

// plain reports whether a text stands in JSON as it is: words, and most names.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

func (s *jsonSink) flag(name string, value bool) {
	s.name(name)
	s.b = strconv.AppendBool(s.b, value)
}

func (s *jsonSink) number(name string, value int64) {
	s.name(name)
	s.b = strconv.AppendInt(s.b, value, 10)
}

func (s *jsonSink) ratio(name string, value float64) {
	s.name(name)
	s.b = append(s.b, ratioText(value)...)
}

func (s *jsonSink) raw(name, text string) {
	s.name(name)
	s.b = append(s.b, text...)
}

// ratioText returns the number in JSON. There are no infinite prices.
func ratioText(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return `"unknown"`
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
