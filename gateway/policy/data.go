package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"
)

// document is one data file as it lies in the tree: its value stands at its folder's path.
type document struct {
	file  string // as shown in errors
	at    []string
	value any
	text  []byte
	where func() places // finds them when they are first asked for
}

// tree is all data of a bundle, merged, and the files it came from.
type tree struct {
	root map[string]any
	docs []document
}

// dataOf reads a bundle's data files, as OPA bundles have them: data.json or data.yaml, whose
// folder is the path.
func dataOf(b *Bundle) ([]document, Errors) {
	var docs []document
	var faults Errors
	for _, file := range b.list {
		ext := path.Ext(file.path)
		if ext != ".json" && ext != ".yaml" && ext != ".yml" {
			continue
		}
		shown := b.source.shown(file.path)
		if path.Base(file.path) != "data"+ext || ext == ".yml" {
			faults = append(faults, Fault{File: shown, Message: "a bundle's data files are called data.json or data.yaml: " +
				"this one would not be read"})
			continue
		}
		doc, fault := documentOf(shown, file)
		if fault != nil {
			faults = append(faults, *fault)
			continue
		}
		docs = append(docs, *doc)
	}
	return docs, faults
}

// add merges a document into the tree.
func (t *tree) add(doc document) *Fault {
	t.docs = append(t.docs, doc)
	clash := merge(t.root, doc.at, doc.value)
	if clash == nil {
		return nil
	}
	fault := &Fault{File: doc.file, Message: "data." + strings.Join(clash, ".") + " stands in another data file too"}
	if len(clash) > len(doc.at) {
		at := doc.where()[pointerOf(clash[len(doc.at):])]
		fault.Line, fault.Column = at.line, at.column
	}
	return fault
}

func documentOf(shown string, f file) (*document, *Fault) {
	doc := &document{file: shown, text: f.text}
	if dir := path.Dir(f.path); dir != "." {
		doc.at = strings.Split(dir, "/")
	}
	read := readYAML
	if path.Ext(f.path) == ".json" {
		read = readJSON
	}
	value, where, fault := read(f.text)
	if fault != nil {
		fault.File = shown
		return nil, fault
	}
	doc.value, doc.where = value, sync.OnceValue(where)
	if _, ok := doc.value.(map[string]any); !ok {
		return nil, &Fault{File: shown, Line: 1, Column: 1, Message: "the document is no object"}
	}
	return doc, nil
}

// readJSON reads a JSON document, and returns what finds the places in it.
func readJSON(text []byte) (value any, where func() places, fault *Fault) {
	at, fault := scan(text)
	if fault != nil {
		return nil, nil, fault
	}
	if err := util.UnmarshalJSON(text, &value); err != nil {
		return nil, nil, &Fault{Message: err.Error()}
	}
	return value, func() places {
		all := make(places, len(at))
		for pointer, offset := range at {
			line, column := lineOf(text, offset)
			all[pointer] = place{line, column}
		}
		return all
	}, nil
}

// merge puts a value into the tree and returns the path that was taken already, or nil.
func merge(root map[string]any, at []string, value any) []string {
	for i, name := range at {
		inner, ok := root[name]
		if !ok {
			inner = map[string]any{}
			root[name] = inner
		}
		next, ok := inner.(map[string]any)
		if !ok {
			return at[:i+1]
		}
		root = next
	}
	fields, _ := value.(map[string]any)
	for name, v := range fields {
		old, taken := root[name].(map[string]any)
		added, object := v.(map[string]any)
		if _, there := root[name]; there && (!taken || !object) {
			return append(slices.Clone(at), name)
		}
		if taken {
			if clash := merge(old, nil, added); clash != nil {
				return append(append(slices.Clone(at), name), clash...)
			}
			continue
		}
		root[name] = v
	}
	return nil
}

// fault returns a fault at a path of the data, with the file and line where it stands.
func (t *tree) fault(at []string, pointer, message string) Fault {
	f := Fault{Message: "data." + strings.Join(at, ".") + ": " + message}
	names := slices.Clone(at)
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if name != "" {
			names = append(names, name)
		}
	}
	if pointer != "" {
		f.Message = "data." + strings.Join(names, ".") + ": " + message
	}
	// The longest part of the path that a file knows: what is missing stands where its
	// object begins.
	for end := len(names); end >= 0; end-- {
		for _, doc := range t.docs {
			if end < len(doc.at) || !slices.Equal(doc.at, names[:len(doc.at)]) {
				continue
			}
			inner := ""
			if end > len(doc.at) {
				inner = "/" + strings.Join(names[len(doc.at):end], "/") // escaped as in the pointer
			}
			at, ok := doc.where()[inner]
			switch {
			case ok:
			case inner == "":
				at = place{1, 1}
			default:
				continue
			}
			f.File, f.Line, f.Column = doc.file, at.line, at.column
			return f
		}
	}
	return f
}

// check holds the documents that are a contract to their schemas.
func (t *tree) check() Errors {
	var faults Errors
	for _, name := range dataSchemas {
		at := []string{"interlock", name}
		value := lookUp(t.root, at...)
		if value == nil {
			if name == "kinds" {
				faults = append(faults, Fault{Message: "data.interlock.kinds is missing: which kinds of request may be done again"})
			}
			continue
		}
		for _, v := range violations(name, value) {
			faults = append(faults, t.fault(at, v.pointer, v.message))
		}
	}
	return faults
}

// outside returns what of a document lies outside its bundle's roots.
func (doc *document) outside(roots []string) Errors {
	var faults Errors
	eachLeaf(doc.at, doc.value, func(at []string) bool {
		if bundle.RootPathsContain(roots, strings.Join(at, "/")) {
			return false
		}
		for _, root := range roots {
			if strings.HasPrefix(root, strings.Join(at, "/")+"/") || len(at) == 0 {
				return true // on the way to a root
			}
		}
		fault := Fault{File: doc.file, Message: fmt.Sprintf(
			"data.%s lies outside the manifest's roots %s", strings.Join(at, "."), strings.Join(roots, ", "))}
		if len(at) > len(doc.at) {
			place := doc.where()[pointerOf(at[len(doc.at):])]
			fault.Line, fault.Column = place.line, place.column
		}
		faults = append(faults, fault)
		return false
	})
	return faults
}

// eachLeaf visits a value and, where visit returns true, what is in it.
func eachLeaf(at []string, v any, visit func(at []string) bool) {
	if !visit(at) {
		return
	}
	fields, _ := v.(map[string]any)
	for name, inner := range fields {
		eachLeaf(append(slices.Clone(at), name), inner, visit)
	}
}
