package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isJSON says whether the whole file is one JSON object. JSON is YAML, but for tabs and
// surrogate pairs that YAML parsers stumble over.
func isJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// parseJSON reads a valid JSON document.
func parseJSON(b []byte) (*node, error) {
	r := &jsonReader{b: b, d: json.NewDecoder(bytes.NewReader(b))}
	r.d.UseNumber()
	for i, c := range b {
		if c == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	return r.node(0)
}

type jsonReader struct {
	b     []byte
	d     *json.Decoder
	lines []int // offsets at which the second line and those after it begin

	// The latest place that a column was counted to: tokens come in order, and a document may
	// be one line.
	line, at, column int
}

// next reads a token and tells where it begins.
func (r *jsonReader) next() (t json.Token, line, column int, err error) {
	from := int(r.d.InputOffset())
	for from < len(r.b) && strings.IndexByte(" \t\r\n:,", r.b[from]) >= 0 {
		from++
	}
	t, err = r.d.Token()
	i := sort.SearchInts(r.lines, from+1)
	if i != r.line {
		r.line, r.at, r.column = i, 0, 0
		if i > 0 {
			r.at = r.lines[i-1]
		}
	}
	to := max(r.at, min(from, len(r.b)))
	r.column += utf8.RuneCount(r.b[r.at:to])
	r.at = to
	return t, i + 1, r.column + 1, err
}

func (r *jsonReader) node(depth int) (*node, error) {
	t, line, column, err := r.next()
	if err != nil {
		return nil, err
	}
	return r.value(t, line, column, depth)
}

func (r *jsonReader) value(t json.Token, line, column, depth int) (*node, error) {
	n := &node{line: line, column: column}
	switch v := t.(type) {
	case nil:
	case bool:
		n.kind, n.text = boolean, strconv.FormatBool(v)
	case json.Number:
		n.kind, n.text = float, v.String()
		if _, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			n.kind = integer
		}
	case string:
		n.kind, n.text = text, v
	case json.Delim:
		if depth >= maxDepth {
			return nil, &fault{line, column, "is nested more than " + strconv.Itoa(maxDepth) + " levels deep"}
		}
		if v == '[' {
			n.kind = sequence
			return n, r.items(n, depth)
		}
		n.kind = mapping
		return n, r.fields(n, depth)
	}
	return n, nil
}

func (r *jsonReader) items(n *node, depth int) error {
	for {
		t, line, column, err := r.next()
		if err != nil {
			return unexpectedEnd(err)
		}
		if t == json.Delim(']') {
			return nil
		}
		item, err := r.value(t, line, column, depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
}

func (r *jsonReader) fields(n *node, depth int) error {
	for {
		t, line, column, err := r.next()
		if err != nil {
			return unexpectedEnd(err)
		}
		name, ok := t.(string)
		if !ok { // the closing brace
			return nil
		}
		value, err := r.node(depth + 1)
		if err != nil {
			return unexpectedEnd(err)
		}
		n.fields = append(n.fields, field{name: name, line: line, column: column, value: value})
	}
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
