package config

import (
	"go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const self = "github.com/interlock-gateway/interlock/gateway/config"

// unread are keys that nothing needs to read: what they say is done by the loader.
var unread = map[string]string{
	"Config.Version":               "there is one version",
	"Alias.SameModelFailoverFirst": "only true is allowed",
	"Bundle.Unsigned":              "the loader asks for it where there is no key",
}

// A key that is accepted and that nothing reads is a bug: each field of the types is used by
// the gateway, or is warned about as not in force.
func TestEveryKeyIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the whole program")
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: "../.."}, "./gateway/...", "./cmd/...")
	require.NoError(t, err)
	var scope *types.Scope
	for _, p := range loaded {
		require.Empty(t, p.Errors, p.PkgPath)
		if p.PkgPath == self {
			scope = p.Types.Scope()
		}
	}
	require.NotNil(t, scope)
	used := map[types.Object]bool{}
	for _, p := range loaded {
		for id, obj := range p.TypesInfo.Uses {
			file := filepath.Base(p.Fset.Position(id.Pos()).Filename)
			if p.PkgPath != self || accessor(file) {
				used[obj] = true
			}
		}
	}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		if o, ok := reflect.New(typ).Interface().(optional); ok {
			typ = reflect.TypeOf(o.target()).Elem()
		}
		switch {
		case typ == reflect.TypeFor[Served]():
			typ = reflect.TypeFor[ChannelModel]()
		case typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map:
			walk(typ.Elem())
			return
		}
		if typ.Kind() != reflect.Struct || seen[typ] || len(fieldsOf(typ)) == 0 {
			return
		}
		seen[typ] = true
		declared := scope.Lookup(typ.Name()).Type().Underlying().(*types.Struct)
		for _, f := range fieldsOf(typ) {
			field := typ.Field(f.index)
			name := typ.Name() + "." + field.Name
			if f.tags.soon != "" || unread[name] != "" {
				continue // and so what is below it
			}
			if !used[declared.Field(f.index)] && !wholly(field.Type) {
				t.Errorf("%s (key %s) is read by nothing", name, f.name)
			}
			walk(field.Type)
		}
	}
	walk(reflect.TypeFor[Config]())
}

// wholly says whether nothing below a mapping is in force.
func wholly(typ reflect.Type) bool {
	fields := []keyField{}
	if typ.Kind() == reflect.Struct {
		fields = fieldsOf(typ)
	}
	for _, f := range fields {
		if f.tags.soon == "" {
			return false
		}
	}
	return len(fields) > 0
}

// accessor says whether a file of this package holds types with methods through which others
// read, as opposed to what loads and checks them.
func accessor(file string) bool {
	for _, own := range []string{"check", "decode", "suggest", "tags", "fingerprint", "diff", "schema", "environment", "load"} {
		if strings.HasPrefix(file, own) {
			return false
		}
	}
	return true
}
