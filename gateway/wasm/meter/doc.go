// Package meter owns the rewriting of a Wasm module so that its work can be counted, bounded
// and interrupted. It reads a core Wasm 2.0 module, refuses whatever it does not know, and
// writes one that does the same and counts.
//
// At each function's entry, at each loop's header and at least every Stretch instructions along
// any path a hidden counter goes down by one unit; a jump forward that goes through a loop's header
// and the table behind it, as Go's compiler makes them all, goes straight to where it leads, and
// counts as one along its path; what works on a length (memory.fill,
// memory.copy, memory.init, the table instructions) is charged by that length before it runs.
// When a slice of Slice units is used up, an appended function takes the next one from the
// budget of the call, or traps where none is left; it grows the memory by nothing, which is how
// the guest's machine code gets back to Go, where the collector can stop it; and it traps where
// the host has set the kill flag.
//
// The package runs nothing and imports nothing of ours. It does not validate the types of a
// module: the engine does that with what comes out.
package meter

// Version changes whenever the same module would be rewritten differently.
const Version = 2

// Slice is how many units a guest works off between two looks at its budget and its kill flag.
const Slice = 20_000

// Stretch is how many instructions a guest executes at most between two charges.
const Stretch = 64

// StackWords is how deep calls may be nested, in words of 8 bytes by an estimate of each
// function's frame: some 180,000 calls of the smallest function, or 20,000 to 50,000 of what
// compilers make.
const StackWords = 3_000_000

// The names under which the rewritten module exports its counters, all of them mutable
// globals. A module that exports a name that begins with Prefix is refused.
const (
	Prefix = "interlock_meter_"

	// SliceGlobal is what is left of the current slice. It can be negative inside a call.
	SliceGlobal = Prefix + "slice"
	// BudgetGlobal is what is left of the budget, without the current slice. It is negative
	// after a call that was stopped because it had used it up.
	BudgetGlobal = Prefix + "budget"
	// KillGlobal stops the guest at the end of its slice when it is not zero.
	KillGlobal = Prefix + "kill"
	// DepthGlobal is an i32, how much stack is in use. Beyond StackWords it says that the guest
	// was stopped for that.
	DepthGlobal = Prefix + "depth"
)

// What one charge costs, in units, beside the one for a stretch of code.
const (
	growCost    = 256 // memory.grow: the host's work, whatever the size
	importCost  = 20  // a call out of the guest
	memoryShift = 6   // 64 bytes a unit
	tableShift  = 3   // 8 entries a unit
)
