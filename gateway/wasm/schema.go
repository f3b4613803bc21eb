package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// nothing loads no schema: a plugin's may not name a file or an address.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a configuration's schema stands for itself", url)
}

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	const name = "plugin:config"
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
}

// checkConfig holds a configuration against the manifest's schema.
func (m *Manifest) checkConfig(config []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return errors.New("it is not an object")
	}
	if len(m.ConfigSchema) == 0 {
		return nil
	}
	s, err := compileSchema(m.ConfigSchema)
	if err != nil {
		return err
	}
	err = s.Validate(v)
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var all unfit
	all.collect(wrong, message.NewPrinter(language.English))
	return all
}

// collect adds what a schema finds wrong, at the places where it is. What fits none of several
// alternatives is one fault.
func (e *unfit) collect(err *jsonschema.ValidationError, p *message.Printer) {
	path := append([]string{"config"}, err.InstanceLocation...)
	switch k := err.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*e = append(*e, Fault{append(slices.Clone(path), name), "the plugin has no such key"})
		}
		return
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
	default:
		if len(err.Causes) > 0 {
			for _, c := range err.Causes {
				e.collect(c, p)
			}
			return
		}
	}
	*e = append(*e, Fault{path, err.ErrorKind.LocalizedString(p)})
}
