package bedrock_test

import (
	"testing"

	"github.com/interlock-gateway/interlock/plugins/bedrock"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

func newGuest(t *testing.T, config string) *plugintest.Guest {
	return plugintest.NewGuest(t, interlock.NewGuest(bedrock.Manifest, bedrock.New), testModel, config)
}
