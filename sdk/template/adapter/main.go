// Command acme is a plugin for Interlock, built as a WebAssembly module. It translates between
// OpenAI's format, which callers and the gateway speak, and that of a made-up provider:
//
//	POST /v2/generate  {"model", "turns": [{"from", "text": […]}], "tools", "limit", …}
//	an answer          {"id", "created", "text", "calls", "ended", "usage"}
//	a stream           events named start, text, call, input, end, error
//	an error           {"error": {"kind", "message", "field"}}
//
// The made-up provider is all over request.go, answer.go and failure.go: read its API's pages and
// yours side by side, and replace it. What you keep is the shape.
//
// A plugin is pure functions: the gateway runs several instances of it and gives each call to any
// of them. What has to be known later goes into the state (see answer.go), never into a variable.
package main

import interlock "github.com/interlock-gateway/interlock/sdk/go"

func init() { interlock.Serve(Manifest, New) }

func main() {}
