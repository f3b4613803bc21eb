// Package interlock is the Go SDK for plugins of the gateway: an adapter translates between
// OpenAI's format and a provider's, a guard looks at what passes. It owns the plugin ABI's guest
// side (see sdk/abi) and nothing of any provider's format; packages json, chat and embedding
// beside it do the rest. It must stay free of fmt, encoding/json and reflect, and must not
// import the gateway.
//
// A plugin is a Plugin made by a Maker. The same source is built for WebAssembly, where Serve
// connects it to the exports, and natively, where NewGuest answers the same calls with the same
// bytes.
//
//	const Manifest = `{"name": "acme", …}`
//
//	func New(config []byte) (interlock.Plugin, error) {
//		return interlock.Plugin{Request: request, Response: response, Events: events}, nil
//	}
//
// and in package main:
//
//	func init() { interlock.Serve(acme.Manifest, acme.New) }
//	func main() {}
//
// built with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
package interlock
