package ollama_test

import (
	"testing"

	"github.com/interlock-gateway/interlock/plugins/ollama"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "llama3.2"

func newGuest(t *testing.T, config string) *plugintest.Guest {
	return plugintest.NewGuest(t, interlock.NewGuest(ollama.Manifest, ollama.New), testModel, config)
}
