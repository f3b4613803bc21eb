//go:build wasip1

package interlock

import "unsafe"

// What a module keeps: the one plugin it serves, and the memory of the calls.
var (
	served *Guest
	input  []byte
	output []byte
)

// Serve connects a plugin to the module's exports. It is called once, in the init function of
// package main.
func Serve(manifest string, m Maker) { served = NewGuest(manifest, m) }

//go:wasmexport interlock_abi
func exportABI() uint32 { return ABI }

//go:wasmexport interlock_alloc
func exportAlloc(n uint32) uint32 {
	if uint64(n) > uint64(len(input)) {
		input = make([]byte, max(n, 8192))
	}
	return address(input)
}

//go:wasmexport interlock_call
func exportCall(op, n uint32) uint64 {
	if uint64(n) > uint64(len(input)) {
		panic("more input than was asked for")
	}
	out, failed := served.Call(op, input[:n], output[:0])
	output = out
	result := uint64(address(out))<<32 | uint64(len(out))
	if failed {
		result |= 1 << 63
	}
	return result
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

//go:wasmimport interlock log
func hostLog(level uint32, line unsafe.Pointer, n uint32)

// Level is how much a line of the log matters.
type Level uint32

// The levels.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// Log hands a line to the gateway's log. A module that calls it needs the capability "log". The
// host takes 4096 bytes a line and 16 lines a call.
func Log(level Level, line string) {
	hostLog(uint32(level), unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
}
