package gemini_test

import (
	"testing"

	"github.com/interlock-gateway/interlock/plugins/gemini"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "gemini-2.5-flash"

func newGuest(t *testing.T, config string) *plugintest.Guest {
	g := plugintest.NewGuest(t, interlock.NewGuest(gemini.Manifest, gemini.New), testModel, config)
	framing := interlock.ByContentType
	g.Framing = &framing
	return g
}

type object = map[string]any

func list(v any) (all []object) {
	items, _ := v.([]any)
	for _, item := range items {
		o, _ := item.(object)
		all = append(all, o)
	}
	return all
}
