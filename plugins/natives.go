package plugins

import "github.com/interlock-gateway/interlock/plugins/bedrock"

// natives are the adapters that come with the gateway.
var natives = map[string]Source{
	"bedrock": {Manifest: bedrock.Manifest, New: bedrock.New},
}
