package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unique"
)

// List is a short list of words in canonical form, so that inputs which mean the same are
// equal. The zero value is the empty list. Building one allocates: where a generation is
// built, or once per distinct list. Comparing two, and hashing one, does not look at the words.
type List struct{ json unique.Handle[string] }

// ListOf returns the list of the words, sorted, each once.
func ListOf(words ...string) List {
	words = slices.Clone(words)
	slices.Sort(words)
	return OrderedListOf(slices.Compact(words)...)
}

// OrderedListOf returns the list of the words as given, for lists whose order means something.
func OrderedListOf(words ...string) List {
	if len(words) == 0 {
		return List{}
	}
	return List{json: unique.Make(canonical(words))}
}

// JSON returns the list as a JSON array.
func (l List) JSON() string {
	if l == (List{}) {
		return "[]"
	}
	return l.json.Value()
}

// Object is a small JSON object in canonical form (sorted keys). The zero value is the empty
// object. A key's labels, an alias's requirements and its quality gates are such objects.
type Object struct{ json unique.Handle[string] }

// LabelsOf returns the labels as an object. It allocates: once per generation.
func LabelsOf(labels map[string]string) Object {
	if len(labels) == 0 {
		return Object{}
	}
	return Object{json: unique.Make(canonical(labels))}
}

// ObjectOf returns any value that marshals to a JSON object in canonical form. It allocates:
// once per generation.
func ObjectOf(v any) (Object, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return Object{}, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return Object{}, errors.New("not a JSON object")
	}
	if len(fields) == 0 {
		return Object{}, nil
	}
	return Object{json: unique.Make(canonical(fields))}, nil
}

// JSON returns the object as JSON.
func (o Object) JSON() string {
	if o == (Object{}) {
		return "{}"
	}
	return o.json.Value()
}

// canonical marshals what surely can be marshalled: maps with string keys come out sorted.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("policy: " + err.Error())
	}
	return string(text)
}
