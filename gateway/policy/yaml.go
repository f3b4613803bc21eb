package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	yamlast "github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/open-policy-agent/opa/v1/util"
)

// Data in YAML is what OPA makes of it. OPA's reader forgets where things stand, and of a name
// that stands twice in one mapping it takes the last in silence: both are found in the syntax
// tree of another one.

// maxYAML bounds a file: the second parser needs the square of a nesting's depth.
const maxYAML = 4 << 20

func readYAML(text []byte) (value any, where func() places, fault *Fault) {
	if len(text) > maxYAML {
		return nil, nil, &Fault{Message: fmt.Sprintf("larger than %d MiB: data that large is JSON", maxYAML>>20)}
	}
	if err := util.Unmarshal(text, &value); err != nil {
		return nil, nil, yamlFault(err)
	}
	if tooDeep(value, maxDepth) {
		return nil, nil, &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	s, err := parsedYAML(text)
	if err != nil {
		return nil, nil, yamlFault(err)
	}
	if s.twice != nil {
		return nil, nil, s.twice
	}
	return value, func() places { return s.at }, nil
}

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// yamlFault takes message and place from the error of either parser.
func yamlFault(err error) *Fault {
	fault := &Fault{Line: 1, Column: 1}
	var e yaml.Error
	if errors.As(err, &e) {
		fault.Message = "not YAML: " + e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			fault.Line, fault.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
		}
		return fault
	}
	fault.Message = err.Error()
	if m := yamlLine.FindStringSubmatch(fault.Message); m != nil {
		fault.Line, _ = strconv.Atoi(m[1])
		fault.Column = 0
	}
	return fault
}

func tooDeep(v any, left int) bool {
	if left < 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if tooDeep(inner, left-1) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if tooDeep(inner, left-1) {
				return true
			}
		}
	}
	return false
}

// yamlScanner finds the places of a document's values.
type yamlScanner struct {
	at    places
	twice *Fault
}

func parsedYAML(text []byte) (s *yamlScanner, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser is not ours, and the file may hold anything
			s, err = nil, errors.New("not YAML that can be read")
		}
	}()
	// Every line end is one newline to YAML; the parser miscounts the others.
	plain := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(text), "\ufeff"))
	file, err := parser.ParseBytes([]byte(plain), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	s = &yamlScanner{at: places{}}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			s.value("", doc.Body)
			break // OPA reads the first
		}
	}
	return s, nil
}

// value notes where what is in a value stands. What an alias stands for is where the alias is.
func (s *yamlScanner) value(pointer string, n yamlast.Node) {
	switch v := n.(type) {
	case *yamlast.MappingNode:
		s.mapping(pointer, v.Values)
	case *yamlast.MappingValueNode:
		s.mapping(pointer, []*yamlast.MappingValueNode{v})
	case *yamlast.SequenceNode:
		for i, item := range v.Values {
			inner := pointer + "/" + strconv.Itoa(i)
			s.at[inner] = yamlPlace(item)
			s.value(inner, item)
		}
	case *yamlast.AnchorNode:
		s.value(pointer, v.Value)
	case *yamlast.TagNode:
		s.value(pointer, v.Value)
	}
}

func (s *yamlScanner) mapping(pointer string, values []*yamlast.MappingValueNode) {
	for _, v := range values {
		if v.Key.IsMergeKey() {
			continue
		}
		name := strings.TrimSpace(v.Key.GetToken().Value)
		inner := pointer + "/" + escapePointer(name)
		at := yamlPlace(v.Key)
		if _, again := s.at[inner]; again {
			if s.twice == nil {
				s.twice = &Fault{Line: at.line, Column: at.column, Message: (&twiceError{name: name}).Error()}
			}
			continue
		}
		s.at[inner] = at
		s.value(inner, v.Value)
	}
}

func yamlPlace(n yamlast.Node) place {
	switch v := n.(type) {
	case *yamlast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return yamlPlace(v.Values[0].Key)
		}
	case *yamlast.MappingValueNode:
		return yamlPlace(v.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
	}
	return place{1, 1}
}
