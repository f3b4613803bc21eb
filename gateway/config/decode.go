package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// scalar is a type of our own that is written as one text.
type scalar interface{ parse(text string) error }

// shape is a type whose value is read from a node of more than one kind.
type shape interface {
	decode(d *document, n *node, key string)
}

// asker says of a mapping whether what it holds asks for anything; where that is not
// obvious from its being there.
type asker interface{ asks() bool }

// read turns the file's bytes into a tree.
func (d *document) read(b []byte) (*node, bool) {
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	var root *node
	var err error
	switch {
	case !utf8.Valid(b):
		err = &fault{1, 1, "is not UTF-8 text"}
	case len(b) > maxBytes:
		err = &fault{1, 1, "is larger than 8 MiB"}
	case isJSON(b):
		root, err = parseJSON(b)
	default:
		root, err = parseYAML(b)
	}
	if f, ok := err.(*fault); ok {
		d.rejectAt(f.line, f.column, "", "%s", f.message)
	} else if err != nil {
		d.rejectAt(1, 1, "", "cannot be read: %s", err)
	}
	if root == nil {
		root = &node{line: 1, column: 1}
	}
	return root, err == nil
}

func (d *document) decode(c *Config, root *node) {
	d.value(reflect.ValueOf(c).Elem(), root, "", tags{})
}

// value reads a node into a Go value. What is wrong is reported and leaves the value as it
// is; a node that holds nothing counts as left out.
func (d *document) value(v reflect.Value, n *node, key string, t tags) {
	if d.tooMany(n, key) || n.kind == null {
		return
	}
	if o, ok := v.Addr().Interface().(optional); ok {
		before := len(d.errors)
		d.value(reflect.ValueOf(o.target()).Elem(), n, key, t)
		if len(d.errors) == before {
			o.mark()
		}
		return
	}
	if s, ok := v.Addr().Interface().(shape); ok {
		s.decode(d, n, key)
		return
	}
	if s, ok := v.Addr().Interface().(scalar); ok {
		d.own(s, n, key)
		if size, ok := s.(*Size); ok && t.outsideSize(*size) != "" && !d.isBroken(key) {
			d.reject(n, key, "%s", t.outsideSize(*size))
		}
		return
	}
	if v.Type() == durationType {
		d.duration(v, n, key, t)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Interface())
		d.value(v.Elem(), n, key, t)
	case reflect.Struct:
		d.structure(v, n, key)
	case reflect.Map:
		d.table(v, n, key, t)
	case reflect.Slice:
		d.list(v, n, key, t)
	case reflect.String:
		d.text(v, n, key, t)
	case reflect.Bool:
		d.boolean(v, n, key)
	case reflect.Int:
		d.integer(v, n, key, t)
	case reflect.Float64:
		d.float(v, n, key, t)
	default:
		panic("config: no reader for " + v.Type().String())
	}
}

// tooMany counts the values read, aliases as often as they are used.
func (d *document) tooMany(n *node, key string) bool {
	d.nodes++
	if d.nodes == maxNodes+1 {
		d.reject(n, key, "the file holds too many values, by its aliases (*)")
	}
	return d.nodes > maxNodes
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
)

func (d *document) wrongKind(n *node, key, want string) {
	d.reject(n, key, "%s is expected, not %s", want, n.kind)
}

func (d *document) structure(v reflect.Value, n *node, key string) {
	if n.kind != mapping {
		d.wrongKind(n, key, "a mapping")
		return
	}
	known := fieldsOf(v.Type())
	seen := map[string]int{}
	for _, f := range n.fields {
		path := Join(key, f.name)
		i := slices.IndexFunc(known, func(k keyField) bool { return k.name == f.name })
		if i < 0 {
			d.rejectAt(f.line, f.column, path, "unknown key; allowed here: %s", nearestFirst(f.name, known))
			continue
		}
		if line, twice := seen[f.name]; twice {
			d.rejectAt(f.line, f.column, path, "given twice: first in line %d", line)
			continue
		}
		seen[f.name] = f.line
		d.put(path, f)
		target := v.Field(known[i].index)
		d.value(target, f.value, path, known[i].tags)
		d.soon(target, f, path, known[i].tags)
	}
	for _, k := range known {
		path := Join(key, k.name)
		if k.tags.required && v.Field(k.index).IsZero() && !d.isBroken(path) {
			d.rejectAt(n.line, n.column, path, "is required")
			d.broken[path] = true
		}
	}
}

// put notes where a key's value stands: a scalar's own place, a mapping's or list's that of
// its key.
func (d *document) put(path string, f field) {
	d.places[path] = place{max(f.value.line, 1), max(f.value.column, 1)}
	if f.value.kind == mapping || f.value.kind == sequence || f.value.kind == null {
		d.places[path] = place{f.line, f.column}
	}
}

// soon warns of a key that asks for something that is not built yet.
func (d *document) soon(v reflect.Value, f field, path string, t tags) {
	if t.soon == "" || t.soon == "-" || v.IsZero() || f.value.kind == null {
		return
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 || f.value.kind == mapping && len(f.value.fields) == 0 {
		return
	}
	if a, ok := v.Interface().(asker); ok && !a.asks() {
		return
	}
	d.warn(path, "not in force: this version does not have %s yet", t.soon)
}

func (d *document) table(v reflect.Value, n *node, key string, t tags) {
	if n.kind != mapping {
		d.wrongKind(n, key, "a mapping")
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.fields))
	v.Set(m)
	seen := map[string]int{}
	t.item = true
	for _, f := range n.fields {
		path := Join(key, f.name)
		if line, twice := seen[f.name]; twice {
			d.rejectAt(f.line, f.column, path, "given twice: first in line %d", line)
			continue
		}
		seen[f.name] = f.line
		if format, ok := formats[t.keys]; ok && !format.ok(f.name) {
			d.rejectAt(f.line, f.column, path, "the key must be %s", format.allowed)
		}
		d.put(path, f)
		item := reflect.New(v.Type().Elem())
		fill(item.Interface())
		if f.value.kind == null {
			d.requiredOf(item.Elem(), f, path)
		}
		d.value(item.Elem(), f.value, path, t)
		m.SetMapIndex(reflect.ValueOf(f.name), item.Elem())
	}
}

// requiredOf reports what a mapping that holds nothing lacks.
func (d *document) requiredOf(v reflect.Value, f field, path string) {
	if v.Kind() == reflect.Struct {
		d.structure(v, &node{kind: mapping, line: f.line, column: f.column}, path)
	}
}

func (d *document) list(v reflect.Value, n *node, key string, t tags) {
	if n.kind != sequence {
		d.wrongKind(n, key, "a list")
		return
	}
	t.item = true
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		path := at(key, i)
		d.places[path] = place{max(item.line, 1), max(item.column, 1)}
		fill(out.Index(i).Addr().Interface())
		if item.kind == null {
			d.reject(item, path, "an empty item")
			continue
		}
		d.value(out.Index(i), item, path, t)
	}
	v.Set(out)
}

// decode reads "*" or a mapping of models.
func (s *Served) decode(d *document, n *node, key string) {
	if n.kind == text && n.text == "*" {
		s.Any = true
		return
	}
	if n.kind != mapping {
		d.reject(n, key, `a mapping of models, or "*" for any, is expected, not %s`, n.kind)
		return
	}
	models := map[string]ChannelModel{}
	d.table(reflect.ValueOf(&models).Elem(), n, key, tags{keys: "served"})
	if _, ok := models["*"]; ok {
		s.Any = true
		delete(models, "*")
	}
	s.Models = models
}

// decode turns a mapping into JSON, the references in its texts replaced.
func (doc *Document) decode(d *document, n *node, key string) {
	if n.kind != mapping {
		d.wrongKind(n, key, "a mapping")
		return
	}
	b, err := json.Marshal(d.free(n, key))
	if err != nil {
		d.reject(n, key, "cannot be written as JSON: %s", err)
		return
	}
	doc.JSON = Secret(b)
}

// free reads a node that may hold anything.
func (d *document) free(n *node, key string) any {
	if d.tooMany(n, key) {
		return nil
	}
	switch n.kind {
	case boolean:
		return n.text == "true"
	case integer, float:
		return json.Number(n.text)
	case text:
		value, _, _ := d.expand(n, key)
		return value
	case sequence:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			d.places[at(key, i)] = place{max(item.line, 1), max(item.column, 1)}
			list[i] = d.free(item, at(key, i))
		}
		return list
	case mapping:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			path := Join(key, f.name)
			if _, twice := m[f.name]; twice {
				d.rejectAt(f.line, f.column, path, "given twice")
			}
			d.places[path] = place{max(f.line, 1), max(f.column, 1)}
			m[f.name] = d.free(f.value, path)
		}
		return m
	default:
		return nil
	}
}
