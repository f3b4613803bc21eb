// Command wasm is the reference guest as a module:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o echo.wasm ./sdk/guests/go/echo/wasm
package main

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

func init() { interlock.Serve(echo.Manifest, echo.New) }

func main() {}
