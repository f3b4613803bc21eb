package plugins

import (
	"github.com/interlock-gateway/interlock/plugins/anthropic"
	"github.com/interlock-gateway/interlock/plugins/azure"
	"github.com/interlock-gateway/interlock/plugins/bedrock"
	"github.com/interlock-gateway/interlock/plugins/cohere"
	"github.com/interlock-gateway/interlock/plugins/gemini"
	"github.com/interlock-gateway/interlock/plugins/mistral"
	"github.com/interlock-gateway/interlock/plugins/ollama"
)

// natives are the adapters that come with the gateway.
var natives = map[string]Source{
	"anthropic": {Manifest: anthropic.Manifest, New: anthropic.New},
	"azure":     {Manifest: azure.Manifest, New: azure.New},
	"bedrock":   {Manifest: bedrock.Manifest, New: bedrock.New},
	"cohere":    {Manifest: cohere.Manifest, New: cohere.New},
	"gemini":    {Manifest: gemini.Manifest, New: gemini.New},
	"mistral":   {Manifest: mistral.Manifest, New: mistral.New},
	"ollama":    {Manifest: ollama.Manifest, New: ollama.New},
}
