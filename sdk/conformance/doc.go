// Package conformance holds a plugin to the ABI and to what a caller may expect of an answer in
// OpenAI's format. It owns the checks and the format of fixtures (README.md); it runs a plugin
// only through a Caller, so that the same checks serve a native build, a WebAssembly module and
// any SDK. It must not know how a module is run, nor any provider.
package conformance
