package anthropic_test

import (
	"strings"
	"testing"

	"github.com/interlock-gateway/interlock/plugins/anthropic"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const testModel = "claude-sonnet-4-5-20250929"

func newGuest(t *testing.T, config string) *plugintest.Guest {
	return plugintest.NewGuest(t, interlock.NewGuest(anthropic.Manifest, anthropic.New), testModel, config)
}

// frames cuts a stream of server-sent events with line feeds, as the host does.
func frames(body string) (list []interlock.Frame) {
	for _, block := range strings.Split(body, "\n\n") {
		var f interlock.Frame
		for _, line := range strings.Split(block, "\n") {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				f.Name = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				f.Data = append(f.Data, v...)
			}
		}
		if f.Data != nil {
			list = append(list, f)
		}
	}
	return list
}
