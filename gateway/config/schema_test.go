package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSchemaIsWhatTheTypesAre(t *testing.T) {
	compileSchema(t)
	var s struct {
		Schema string `json:"$schema"`
		Defs   map[string]struct {
			Properties map[string]struct {
				Description string
				Default     any
			}
			Required             []string
			AdditionalProperties any
			Description          string
		} `json:"$defs"`
		Properties           map[string]struct{ Description string }
		AdditionalProperties any
	}
	require.NoError(t, json.Unmarshal(Schema(), &s))
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema)
	require.Equal(t, false, s.AdditionalProperties)
	types := map[string]reflect.Type{}
	collect(reflect.TypeFor[Config](), types)
	require.Len(t, s.Properties, len(fieldsOf(types["Config"])))
	delete(types, "Config")
	require.Equal(t, slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(s.Defs)))
	for name, typ := range types {
		def := s.Defs[name]
		require.Equal(t, false, def.AdditionalProperties, name)
		require.NotEmpty(t, def.Description, name)
		require.Len(t, def.Properties, len(fieldsOf(typ)), name)
		for _, f := range fieldsOf(typ) {
			p, ok := def.Properties[f.name]
			require.True(t, ok, "%s.%s", name, f.name)
			require.NotEmpty(t, p.Description, "%s.%s", name, f.name)
			require.Equal(t, f.tags.def != "", p.Default != nil, "%s.%s", name, f.name)
			require.Equal(t, f.tags.required, slices.Contains(def.Required, f.name), "%s.%s", name, f.name)
		}
	}
}

// collect finds every struct type of the configuration.
func collect(t reflect.Type, types map[string]reflect.Type) {
	if o, ok := reflect.New(t).Interface().(optional); ok {
		collect(reflect.TypeOf(o.target()).Elem(), types)
		return
	}
	switch {
	case t == reflect.TypeFor[Served]():
		collect(reflect.TypeFor[ChannelModel](), types)
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		collect(t.Elem(), types)
	case t.Kind() == reflect.Struct && len(fieldsOf(t)) > 0 && types[t.Name()] == nil:
		types[t.Name()] = t
		for _, f := range fieldsOf(t) {
			collect(t.Field(f.index).Type, types)
		}
	}
}

// Every tag names something that exists, and every string that names something is checked.
func TestTagsAreKnown(t *testing.T) {
	types := map[string]reflect.Type{}
	collect(reflect.TypeFor[Config](), types)
	for name, typ := range types {
		for _, f := range fieldsOf(typ) {
			where := name + "." + f.name
			if f.tags.is != "" {
				require.Contains(t, formats, f.tags.is, where)
			}
			if f.tags.keys != "" {
				require.Contains(t, formats, f.tags.keys, where)
			}
			ft := typ.Field(f.index).Type
			if ft.Kind() == reflect.Map {
				require.NotEmpty(t, f.tags.keys, where)
			}
			if ft.Kind() == reflect.String && f.name != "otlp_endpoint" && f.name != "verification_key" {
				require.True(t, f.tags.is != "" || len(f.tags.enum) > 0, "%s is not checked", where)
			}
			if ft.PkgPath() != "" && ft.Kind() == reflect.String && ft != secretType {
				require.NotEmpty(t, f.tags.enum, "%s is a word and has no list of them", where)
			}
			if len(f.tags.enum) > 0 && f.tags.def != "" {
				require.Contains(t, f.tags.enum, f.tags.def, where)
			}
		}
	}
}
