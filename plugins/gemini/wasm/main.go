// Command wasm is the gemini adapter as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o gemini.wasm ./plugins/gemini/wasm
package main

import (
	"github.com/interlock-gateway/interlock/plugins/gemini"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func init() { interlock.Serve(gemini.Manifest, gemini.New) }

func main() {}
