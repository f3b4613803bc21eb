package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// These are small functions that must not be inlined: in WebAssembly an append takes about two
// hundred bytes, an error three hundred, and the adapter has many.

//go:noinline
func char(b []byte, c byte) []byte { return append(b, c) }

//go:noinline
func raw(b []byte, text string) []byte { return append(b, text...) }

//go:noinline
func join(b []byte, v []byte) []byte { return append(b, v...) }

// next begins an item of a list, or an object's member that is written by hand.
//
//go:noinline
func next(b []byte) []byte { return json.AppendComma(b) }

// object begins a member that is an object.
//
//go:noinline
func object(b []byte, key string) []byte { return append(json.AppendKey(b, key), '{') }

// array begins a member that is an array.
//
//go:noinline
func array(b []byte, key string) []byte { return append(json.AppendKey(b, key), '[') }

//go:noinline
func badParam(param, message string) error { return interlock.BadParam(param, message) }

//go:noinline
func unsupported(param, message string) error { return interlock.Unsupported(param, message) }

//go:noinline
func malformed(message string) error { return interlock.Malformed(message) }

//go:noinline
func badConfig(message string) error { return interlock.Config(message) }

//go:noinline
func is(v json.Value, text string) bool { return v.Is(text) }

//go:noinline
func writeU32(w *interlock.Writer, n uint32) { w.U32(n) }

//go:noinline
func writeU64(w *interlock.Writer, n uint64) { w.U64(n) }

//go:noinline
func writeBytes(w *interlock.Writer, b []byte) { w.Bytes(b) }

//go:noinline
func readU32(r *interlock.Reader) uint32 { return r.U32() }

//go:noinline
func readU64(r *interlock.Reader) uint64 { return r.U64() }

//go:noinline
func readBytes(r *interlock.Reader) []byte { return r.Bytes() }

//go:noinline
func calls(o *chat.Out, index int) int { return o.Calls(index) }
