// Command acme is a guard for Interlock, built as a WebAssembly module. It refuses requests and
// answers that hold one of the configured words: replace what it looks for, and what it does.
//
// A plugin is pure functions: the gateway runs several instances of it and gives each call to any
// of them. What has to be known later in a stream goes into the state, never into a variable.
package main

import interlock "github.com/interlock-gateway/interlock/sdk/go"

func init() { interlock.Serve(Manifest, New) }

func main() {}
