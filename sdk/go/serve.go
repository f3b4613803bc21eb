//go:build !wasip1

package interlock

// Serve connects a plugin to the module's exports. It is called once, in the init function of
// package main. Outside WebAssembly there is nothing to connect it to.
func Serve(string, Maker) {}

// Level is how much a line of the log matters.
type Level uint32

// The levels.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

// Log hands a line to the gateway's log. A module that calls it needs the capability "log".
// Outside WebAssembly nobody listens.
func Log(Level, string) {}
