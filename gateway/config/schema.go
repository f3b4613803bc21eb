package config

import (
	"embed"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
)

// sources holds the comments that are the schema's descriptions.
//
//go:embed alias.go breaker.go budget.go config.go group.go key.go listen.go model.go plugin.go
//go:embed policy.go provider.go storage.go stream.go timeouts.go
var sources embed.FS

// Schema returns the JSON Schema (draft 2020-12) of the file, generated from the types, their
// tags and their comments. What it refuses the loader refuses too; references between keys,
// and what a value means, only the loader checks.
var Schema = sync.OnceValue(func() []byte {
	docs := comments()
	r := &jsonschema.Reflector{
		Anonymous:                  true,
		ExpandedStruct:             true,
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		LookupComment: func(t reflect.Type, field string) string {
			return docs[strings.TrimSuffix(t.Name()+"."+field, ".")]
		},
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0 {
				return nil
			}
			switch t.Kind() {
			case reflect.Slice, reflect.Map:
				return nil
			default:
				return &jsonschema.Schema{} // refined by its field
			}
		},
	}
	// No field leads to this one: what a channel serves is "*" or a mapping of them.
	model := r.Reflect(&ChannelModel{})
	s := r.Reflect(&Config{})
	model.Version, model.Definitions = "", nil
	s.Definitions["ChannelModel"] = model
	s.Title = "Interlock configuration"
	s.Description = "One interlock.yaml. Any text may hold ${env:NAME}, ${env:NAME:-fallback} and ${file:/path}."
	refineType(s, s.Definitions, reflect.TypeFor[Config](), map[reflect.Type]bool{})
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(b, '\n')
})

// comments reads the types' and fields' comments, by "Type" and "Type.Field".
func comments() map[string]string {
	docs := map[string]string{}
	files, err := fs.Glob(sources, "*.go")
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		b, err := sources.ReadFile(name)
		if err != nil {
			panic(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, b, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				commentsOf(docs, g)
			}
		}
	}
	return docs
}

func commentsOf(docs map[string]string, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		docs[t.Name.Name] = oneLine(g.Doc)
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				docs[t.Name.Name+"."+n.Name] = oneLine(f.Doc)
			}
		}
	}
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// refineType brings the tags of a type's fields, and of the types below it, into its schema.
func refineType(s *jsonschema.Schema, defs jsonschema.Definitions, t reflect.Type, done map[reflect.Type]bool) {
	if done[t] {
		return
	}
	done[t] = true
	s.Type = ""
	s.Extras = map[string]any{"type": []string{"object", "null"}}
	for _, f := range fieldsOf(t) {
		field := t.Field(f.index)
		p, ok := s.Properties.Get(f.name)
		if !ok {
			panic("config: no property for " + t.Name() + "." + field.Name)
		}
		refined := valueSchema(field.Type, f.tags, defs, done)
		if kinds, ok := refined.Extras["type"].([]string); ok && f.tags.required {
			refined.Extras["type"] = kinds[:len(kinds)-1] // not null
		}
		refined.Description = p.Description
		if f.tags.soon != "" {
			refined.Description = strings.TrimSpace(refined.Description + " Not in force yet.")
		}
		if f.tags.def != "" {
			refined.Default = jsonDefault(field.Type, f.tags.def)
		}
		s.Properties.Set(f.name, refined)
		if f.tags.required {
			s.Required = append(s.Required, f.name)
		}
	}
}

// jsonDefault is a default as JSON.
func jsonDefault(t reflect.Type, text string) any {
	if t.Kind() == reflect.Slice {
		return []any{jsonDefault(t.Elem(), text)}
	}
	if t == durationType {
		return text
	}
	switch t.Kind() {
	case reflect.Int, reflect.Float64, reflect.Bool:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[scalar]()) {
			return text
		}
		return json.RawMessage(text)
	default:
		return text
	}
}

const globPattern = `([^\[\]{}\\]|\\.){1,256}`

const referencePattern = `\$\{`

func kinds(list ...string) map[string]any { return map[string]any{"type": append(list, "null")} }

// valueSchema is the schema of a value of a type under a field's tags.
func valueSchema(t reflect.Type, g tags, defs jsonschema.Definitions, done map[reflect.Type]bool) *jsonschema.Schema {
	if o, ok := reflect.New(t).Interface().(optional); ok {
		return valueSchema(reflect.TypeOf(o.target()).Elem(), g, defs, done)
	}
	switch reflect.New(t).Interface().(type) {
	case *Served:
		return servedSchema(defs, done)
	case *Document:
		return &jsonschema.Schema{Extras: kinds("object")}
	case *Share:
		return textSchema(`0|`+inner(percentPattern)+`|`+inner(durationPattern), true)
	case *SizeShare:
		return textSchema(inner(percentPattern)+`|`+inner(sizePattern), true)
	case *Size:
		return textSchema(inner(sizePattern), true)
	case *AdapterRef:
		return textSchema(inner(adapterPattern), false)
	case *Auth:
		return textSchema(inner(authPattern), false)
	case *Glob:
		return textSchema(globPattern, false)
	}
	if t == durationType {
		return textSchema(inner(durationPattern), true)
	}
	item := g
	item.item = true
	switch t.Kind() {
	case reflect.Pointer:
		return valueSchema(t.Elem(), g, defs, done)
	case reflect.Struct:
		refineType(defs[t.Name()], defs, t, done)
		return &jsonschema.Schema{Ref: "#/$defs/" + t.Name()}
	case reflect.Slice:
		item.min, item.max = "", ""
		return &jsonschema.Schema{Extras: kinds("array"), Items: valueSchema(t.Elem(), item, defs, done)}
	case reflect.Map:
		s := &jsonschema.Schema{Extras: kinds("object"), AdditionalProperties: valueSchema(t.Elem(), item, defs, done)}
		if f, ok := formats[g.keys]; ok {
			long := uint64(f.longest)
			s.PropertyNames = &jsonschema.Schema{Pattern: f.pattern, MaxLength: &long}
		}
		return s
	case reflect.Bool:
		return &jsonschema.Schema{Extras: kinds("boolean", "string"), Pattern: `^` + referencePattern}
	case reflect.Int:
		return bounded(&jsonschema.Schema{Extras: kinds("integer", "string"), Pattern: `^` + referencePattern}, g)
	case reflect.Float64:
		return bounded(&jsonschema.Schema{Extras: kinds("number", "string"), Pattern: `^` + referencePattern}, g)
	case reflect.String:
		return stringSchema(g)
	default:
		panic("config: no schema for " + t.String())
	}
}

func bounded(s *jsonschema.Schema, g tags) *jsonschema.Schema {
	s.Minimum, s.Maximum = json.Number(g.min), json.Number(g.max)
	return s
}

// inner is a pattern without its anchors.
func inner(pattern string) string {
	return strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
}

// textSchema is a text in one of our own forms; zero lets the number 0 stand for it.
func textSchema(pattern string, zero bool) *jsonschema.Schema {
	s := &jsonschema.Schema{Extras: kinds("string"), Pattern: `^(` + pattern + `)$|` + referencePattern}
	if zero {
		s.Extras = kinds("string", "integer")
		s.Minimum, s.Maximum = "0", "0"
	}
	return s
}

func stringSchema(g tags) *jsonschema.Schema {
	if len(g.enum) > 0 {
		words := make([]any, 0, len(g.enum)+1)
		for _, e := range g.enum {
			words = append(words, e)
		}
		if !g.item {
			words = append(words, nil)
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Enum: words},
			{Type: "string", Pattern: referencePattern},
		}}
	}
	s := &jsonschema.Schema{Extras: kinds("string")}
	f, ok := formats[g.is]
	if !ok {
		return s
	}
	s.Pattern = f.pattern + `|` + referencePattern
	if !g.item && !g.required && g.def == "" {
		s.Pattern = `^$|` + s.Pattern
	}
	return s
}

func servedSchema(defs jsonschema.Definitions, done map[reflect.Type]bool) *jsonschema.Schema {
	models := valueSchema(reflect.TypeFor[map[string]ChannelModel](), tags{keys: "served"}, defs, done)
	models.Extras = map[string]any{"type": "object"}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Const: "*"}, models}}
}
