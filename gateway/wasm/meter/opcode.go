package meter

// The opcodes that the rewriting looks at.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemoryFirst  = 0x28
	opMemoryLast   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opNumericFirst = 0x45
	opI32DivS      = 0x6d
	opI32RemU      = 0x70
	opI64DivS      = 0x7f
	opI64RemU      = 0x82
	opNumericLast  = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	opI32GtU     = 0x4b
	opI32Add     = 0x6a
	opI32Sub     = 0x6b
	opI64Ne      = 0x52
	opI64LtS     = 0x53
	opI64GtS     = 0x55
	opI64Add     = 0x7c
	opI64Sub     = 0x7d
	opI64ShrU    = 0x88
	opI64OfI32U  = 0xad
	vectorConst  = 12
	blockOfEmpty = 0x40
)

// After opMisc.
const (
	miscTruncateLast = 7
	miscMemoryInit   = 8
	miscDataDrop     = 9
	miscMemoryCopy   = 10
	miscMemoryFill   = 11
	miscTableInit    = 12
	miscElemDrop     = 13
	miscTableCopy    = 14
	miscTableGrow    = 15
	miscTableSize    = 16
	miscTableFill    = 17
)

// What an instruction counts in a stretch. Some make no machine code of their own, and some
// wait for memory or a divider.
const (
	weightNone   = 0
	weightPlain  = 1
	weightMemory = 2
	weightCall   = 2
	weightDivide = 4
)

// plain returns the weight of an instruction without immediates, and whether there is such a
// one.
func plain(op byte) (int, bool) {
	switch {
	case op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU:
		return weightDivide, true
	case op >= opNumericFirst && op <= opNumericLast, op == opSelect, op == opRefIsNull:
		return weightPlain, true
	case op == opNop, op == opDrop:
		return weightNone, true
	}
	return 0, false
}

// vectorGaps are the opcodes below 256 that no vector instruction has.
var vectorGaps = func() (gap [256]bool) {
	for _, op := range []int{
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf,
		0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		gap[op] = true
	}
	return gap
}()

// vector reads a vector instruction after its prefix and returns its weight. The number is
// read as the engine reads it, which knows only its shortest form.
func (r *reader) vector() int {
	at := r.i
	op := r.byte()
	if op >= 0x80 && r.byte() != 1 || vectorGaps[op] {
		r.i = at
		r.fail("the vector instruction is not supported")
	}
	switch {
	case op <= 11, op == 92, op == 93:
		r.memoryOperand()
		return weightMemory
	case op >= 84 && op <= 91:
		r.memoryOperand()
		r.byte()
		return weightMemory
	case op == vectorConst:
		r.take(16)
		return weightNone
	case op == 13:
		r.take(16)
	case op >= 21 && op <= 34:
		r.byte()
	}
	return weightMemory
}

// memoryOperand reads an alignment and an offset.
func (r *reader) memoryOperand() {
	if r.u32() >= 32 {
		r.fail("an alignment that is too large, or several memories")
	}
	r.u32()
}

// leastFrame is the smallest estimate of a frame, in words.
const leastFrame = 16
