package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a file may hold. The YAML parser needs the square of a nesting's depth, and recurses.
const (
	maxBytes = 8 << 20
	maxDepth = 64
	maxNodes = 1 << 20 // aliases repeat what they stand for
)

// fault is what is wrong with a file's syntax, and where.
type fault struct {
	line, column int
	message      string
}

func (f *fault) Error() string { return f.message }

// parseYAML reads one YAML document; nil without an error is an empty one.
func parseYAML(b []byte) (root *node, err error) {
	defer func() {
		// The parser is not ours, and the file may hold anything.
		if r := recover(); r != nil {
			root, err = nil, &fault{1, 1, "is not YAML that can be read"}
		}
	}()
	// Every line end is one newline to YAML; the parser miscounts the others.
	source, wrapped := wrap(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(b)))
	tokens := lexer.Tokenize(source)
	if f := tooDeep(tokens); f != nil {
		return nil, f
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntax(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
	default:
		l, c := where(bodies[1])
		return nil, &fault{l, c, "a second document: one is allowed in a file"}
	}
	y := &yamlReader{anchors: map[string]*node{}, unwrap: func(s string) string { return s }}
	if wrapped {
		y.unwrap = unwrap
	}
	root = y.node(bodies[0])
	if y.fault != nil {
		return nil, y.fault
	}
	return root, nil
}

// YAML does not let a brace or a comma stand in a plain text within {…} or […], and a
// reference has braces: there ${env:NAME} would have to be quoted. People write it plain, and
// mean it. So each reference is hidden from the parser behind as many characters of a private
// range (which keeps every column), and brought back in the texts.
const (
	hidden      = 0xE000 // and the ASCII character above it
	hiddenFirst = hidden + ' '
	hiddenLast  = hidden + '~'
)

var reference = regexp.MustCompile(`\$\{[ !#-&(-z|~]*\}`) // no quotes: those are YAML's

func isHidden(r rune) bool { return r >= hiddenFirst && r <= hiddenLast }

// wrap hides the references; false where there is none, or where the file itself has
// characters of that range.
func wrap(source string) (string, bool) {
	if strings.ContainsFunc(source, isHidden) || !strings.Contains(source, "${") {
		return source, false
	}
	return reference.ReplaceAllStringFunc(source, func(ref string) string {
		return strings.Map(func(r rune) rune { return hidden + r }, ref)
	}), true
}

func unwrap(s string) string {
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return r - hidden
		}
		return r
	}, s)
}

// syntax takes the message and the place from the parser's error, and leaves out the piece of
// the file that it quotes: that may hold a secret.
func syntax(err error) *fault {
	f := &fault{line: 1, column: 1, message: "is not YAML"}
	var e yaml.Error
	if !errors.As(err, &e) {
		return f
	}
	if t := e.GetToken(); t != nil && t.Position != nil {
		f.line, f.column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	f.message = "is not YAML: " + e.GetMessage()
	return f
}

// tooDeep finds a nesting deeper than any configuration's, in flow style by its brackets and
// in block style by the columns that its entries stand in.
func tooDeep(tokens token.Tokens) *fault {
	flow, columns := 0, make([]int, 0, maxDepth)
	for i, t := range tokens {
		switch t.Type {
		case token.TagType:
			if i > 0 && tokens[i-1].Type == token.TagType {
				return &fault{t.Position.Line, t.Position.Column, "a tag after a tag"}
			}
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if flow > 0 {
				continue
			}
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		if flow+len(columns) > maxDepth {
			return &fault{t.Position.Line, t.Position.Column, fmt.Sprintf("is nested more than %d levels deep", maxDepth)}
		}
	}
	return nil
}

type yamlReader struct {
	anchors map[string]*node
	unwrap  func(string) string
	fault   *fault // the first one
}

func (y *yamlReader) fail(n ast.Node, message string) *node {
	l, c := where(n)
	if y.fault == nil {
		y.fault = &fault{l, c, message}
	}
	return &node{line: l, column: c}
}

func where(n ast.Node) (line, column int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return where(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return where(v.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	p := n.GetToken().Position
	return max(p.Line, 1), max(p.Column, 1)
}

func (y *yamlReader) node(n ast.Node) *node {
	l, c := where(n)
	out := &node{line: l, column: c}
	switch v := n.(type) {
	case nil, *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.text = boolean, strconv.FormatBool(v.Value)
	case *ast.IntegerNode:
		out.kind, out.text = integer, fmt.Sprint(v.Value)
	case *ast.FloatNode:
		out.kind, out.text = float, strconv.FormatFloat(v.Value, 'g', -1, 64)
	case *ast.StringNode:
		out.kind, out.text = text, y.unwrap(v.Value)
		if plain := v.GetToken().Type == token.StringType; plain && exponent.MatchString(v.Value) {
			out.kind = float // the parser takes 1e3 for a string
		}
	case *ast.LiteralNode:
		out.kind, out.text = text, y.unwrap(v.Value.Value)
	case *ast.MappingNode:
		return y.mapping(out, v.Values)
	case *ast.MappingValueNode:
		return y.mapping(out, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		out.kind = sequence
		for _, item := range v.Values {
			out.items = append(out.items, y.node(item))
		}
	case *ast.AnchorNode:
		out = y.node(v.Value)
		y.anchors[v.Name.GetToken().Value] = out
	case *ast.AliasNode:
		known, ok := y.anchors[v.Value.GetToken().Value]
		if !ok {
			return y.fail(n, "an alias (*) of an anchor (&) that is not defined before it")
		}
		return known
	case *ast.TagNode:
		if v.Start.Value != "!!str" {
			return y.fail(n, "a tag: only !!str is allowed")
		}
		out = y.node(v.Value)
		if out.kind <= text {
			out.kind, out.text = text, y.unwrap(v.Value.GetToken().Value)
		}
	default:
		// .inf, .nan and whatever else YAML knows and a configuration has no use for.
		return y.fail(n, "a value of a kind that no key takes")
	}
	return out
}

var exponent = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]{1,3}$`)

func (y *yamlReader) mapping(out *node, values []*ast.MappingValueNode) *node {
	out.kind = mapping
	var merged []*node
	for _, v := range values {
		if v.Key.IsMergeKey() {
			merged = append(merged, y.merge(v)...)
			continue
		}
		name, ok := keyText(v.Key)
		if !ok {
			y.fail(v, "a key that is no plain text")
			continue
		}
		l, c := where(v.Key)
		out.fields = append(out.fields, field{name: y.unwrap(name), line: l, column: c, value: y.node(v.Value)})
	}
	own := map[string]bool{}
	for _, f := range out.fields {
		own[f.name] = true
	}
	for _, m := range merged {
		for _, f := range m.fields {
			if !own[f.name] {
				own[f.name] = true
				out.fields = append(out.fields, f)
			}
		}
	}
	return out
}

// merge returns the mappings that a merge key (<<) brings in.
func (y *yamlReader) merge(v *ast.MappingValueNode) []*node {
	n := y.node(v.Value)
	list := []*node{n}
	if n.kind == sequence {
		list = n.items
	}
	for _, m := range list {
		if m.kind != mapping {
			y.fail(v, "<< merges mappings only")
			return nil
		}
	}
	return list
}

func keyText(k ast.MapKeyNode) (string, bool) {
	switch v := k.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return strings.TrimSpace(k.GetToken().Value), true
	default:
		return "", false
	}
}
