package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/interlock-gateway/interlock/policies"
)

// The schemas are the gateway's side of the contract: they are compiled in, whatever a bundle
// brings along.

const inputSchema = "input"

// dataSchemas are the documents below data.interlock whose shape is a contract: the core, the
// tools and people read them too. Only kinds must be there in every bundle.
var dataSchemas = []string{"kinds", "matrix", "overrides", "classification"}

// schemaText returns the text of one schema.
func schemaText(name string) []byte {
	text, err := policies.Files.ReadFile("schemas/" + name + "/schema.json")
	if err != nil {
		panic("policy: " + err.Error()) // embedded: a build without it is broken
	}
	return text
}

// schemas are compiled once in a process, when first needed.
var schemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	names := append([]string{inputSchema}, dataSchemas...)
	names = append(names, pointNames...)
	for _, name := range names {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaText(name)))
		if err != nil {
			panic("policy: schema " + name + ": " + err.Error())
		}
		if err := compiler.AddResource("schema:"+name, doc); err != nil {
			panic("policy: schema " + name + ": " + err.Error())
		}
	}
	all := map[string]*jsonschema.Schema{}
	for _, name := range names {
		all[name] = compiler.MustCompile("schema:" + name)
	}
	return all
})

// schemaFault is one place where a document breaks its schema.
type schemaFault struct {
	pointer string
	message string
}

// violations returns every place where the document breaks the schema. The document is made
// of the values that encoding/json gives, with json.Number for numbers.
func violations(name string, doc any) []schemaFault {
	err := schemas()[name].Validate(doc)
	if err == nil {
		return nil
	}
	broken, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return []schemaFault{{message: err.Error()}}
	}
	var all []schemaFault
	collect(broken, &all)
	return all
}

var printer = message.NewPrinter(language.English)

// collect gathers the innermost faults: the outer ones only say that there are some.
func collect(e *jsonschema.ValidationError, all *[]schemaFault) {
	if len(e.Causes) == 0 {
		var pointer strings.Builder
		for _, name := range e.InstanceLocation {
			pointer.WriteString("/" + escapePointer(name))
		}
		at := pointer.String()
		if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok && len(extra.Properties) > 0 {
			allowed := ""
			if names := propertiesAt(e.SchemaURL); len(names) > 0 {
				allowed = "; allowed: " + strings.Join(names, ", ")
			}
			for _, name := range slices.Sorted(slices.Values(extra.Properties)) { // each where it stands
				one := &kind.AdditionalProperties{Properties: []string{name}}
				*all = append(*all, schemaFault{at + "/" + escapePointer(name), one.LocalizedString(printer) + allowed})
			}
			return
		}
		*all = append(*all, schemaFault{at, e.ErrorKind.LocalizedString(printer)})
		return
	}
	for _, cause := range e.Causes {
		collect(cause, all)
	}
}

// propertiesAt returns the names that an object may have by the schema at an address like
// "schema:overrides#/$defs/entry".
func propertiesAt(address string) []string {
	name, pointer, _ := strings.Cut(strings.TrimPrefix(address, "schema:"), "#")
	node, err := decodeJSON(schemaText(name))
	if err != nil {
		return nil
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		node = lookUp(node, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	properties, _ := lookUp(node, "properties").(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// enums holds, for each input path ("failure.phase"), the words it can be; for a list, those
// its members can be.
var enums = sync.OnceValue(func() map[string][]string {
	var root schemaNode
	if err := json.Unmarshal(schemaText(inputSchema), &root); err != nil {
		panic("policy: input schema: " + err.Error())
	}
	all := map[string][]string{}
	root.enums("", all)
	return all
})

type schemaNode struct {
	Properties map[string]*schemaNode `json:"properties"`
	Items      *schemaNode            `json:"items"`
	Enum       []string               `json:"enum"`
}

func (n *schemaNode) enums(path string, all map[string][]string) {
	if len(n.Enum) > 0 {
		all[path] = n.Enum
	}
	if n.Items != nil {
		n.Items.enums(path, all)
	}
	for name, p := range n.Properties {
		p.enums(strings.TrimPrefix(path+"."+name, "."), all)
	}
}

// decodeJSON decodes one JSON value, numbers as json.Number.
func decodeJSON(text []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return v, nil
}
