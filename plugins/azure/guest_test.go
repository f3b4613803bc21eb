package azure_test

import (
	"testing"

	"github.com/interlock-gateway/interlock/plugins/azure"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "gpt-5-mini"

func newGuest(t *testing.T, config string) *plugintest.Guest {
	return plugintest.NewGuest(t, interlock.NewGuest(azure.Manifest, azure.New), testModel, config)
}
