// Command wasm is the bedrock adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o bedrock.wasm ./plugins/bedrock/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/bedrock"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(bedrock.Manifest, bedrock.New) }

func main() {}
