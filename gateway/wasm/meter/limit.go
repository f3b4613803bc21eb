package meter

// Limits bound what a module may declare. What exceeds one is refused before anything is
// allocated for it.
type Limits struct {
	Types         uint32 // function types
	Values        uint32 // parameters, or results, of one function type
	Imports       uint32
	Functions     uint32 // of its own
	BodySize      uint32 // bytes of one function's code
	Locals        uint32 // of one function, without its parameters
	Depth         uint32 // of nested blocks
	Effort        uint64 // of compiling one function, see body.effort
	TotalEffort   uint64 // of all functions together
	Tables        uint32
	TableEntries  uint32 // of all tables together, at the start
	MemoryPages   uint32 // at the start, 64 KiB each
	Globals       uint32
	Exports       uint32
	Elements      uint32 // element segments
	DataSegments  uint32
	DataSize      uint32 // bytes of all data segments
	CustomSection uint32 // bytes of all custom sections, which are dropped
}

// DefaultLimits are roomy for what compilers make of a plugin of a few MiB.
func DefaultLimits() Limits {
	return Limits{
		Types:         10_000,
		Values:        256,
		Imports:       256,
		Functions:     100_000,
		BodySize:      2 << 20,
		Locals:        20_000,
		Depth:         20_000,
		Effort:        2_000_000_000,
		TotalEffort:   10_000_000_000,
		Tables:        16,
		TableEntries:  200_000,
		MemoryPages:   1024,
		Globals:       10_000,
		Exports:       10_000,
		Elements:      10_000,
		DataSegments:  50_000,
		DataSize:      8 << 20,
		CustomSection: 8 << 20,
	}
}
