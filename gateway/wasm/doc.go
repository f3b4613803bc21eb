// Package wasm owns the plugin host: it admits a Wasm module, has its work counted and bounded,
// compiles it, keeps a small pool of instances, and moves bytes in and out of them. What the
// bytes mean is its caller's business (sdk/abi has it).
//
// A guest is hostile until it has proven otherwise, at each call: it gets a budget of work, a
// wall-clock limit behind it, a limit of memory, no file, environment, argument or socket, no
// credential, and a log only where that was granted. Whatever it does ends as bytes, as an error
// of its own, or as a Failure of the plugin: never as a stall or a panic of the gateway.
//
// No other package imports the Wasm engine.
package wasm
