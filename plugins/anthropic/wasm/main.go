// Command wasm is the anthropic adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o anthropic.wasm ./plugins/anthropic/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/anthropic"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(anthropic.Manifest, anthropic.New) }

func main() {}
