// Command wasm is the mistral adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o mistral.wasm ./plugins/mistral/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/mistral"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(mistral.Manifest, mistral.New) }

func main() {}
