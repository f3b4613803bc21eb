// Command wasm is the ollama adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o ollama.wasm ./plugins/ollama/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/ollama"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(ollama.Manifest, ollama.New) }

func main() {}
