// Command wasm is the cohere adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o cohere.wasm ./plugins/cohere/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/cohere"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(cohere.Manifest, cohere.New) }

func main() {}
