// Command wasm is the azure adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o azure.wasm ./plugins/azure/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/azure"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(azure.Manifest, azure.New) }

func main() {}
