package wasm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
	return s.Validate(v)
}
