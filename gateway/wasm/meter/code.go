package meter

// codeSection rewrites the bodies of all functions as it reads them.
func (p *parser) codeSection(s *reader) {
	n := s.count("function bodies", p.limits.Functions)
	own := p.functions[len(p.imports):]
	if int(n) != len(own) {
		s.fail("%d function bodies for %d functions", n, len(own))
	}
	out := make([]byte, 0, len(s.b)-s.i+(len(s.b)-s.i)/4)
	f := &body{parser: p}
	for _, t := range own {
		size := s.u32()
		if size > p.limits.BodySize {
			s.fail("a function of %d bytes, at most %d are allowed", size, p.limits.BodySize)
		}
		f.reader = s.part(size)
		out = f.rewrite(out, p.types[t])
	}
	p.codes = out
}

// body rewrites one function. It follows every path forward through the code and knows how far
// the longest of them has come since its last charge; a jump backwards goes to a loop's header,
// where a charge stands. So no path between two charges is longer than a stretch, however the
// code jumps.
type body struct {
	*reader
	parser *parser
	out    []byte // the code, without what stands around it
	copied int    // up to where the source stands in out
	calls  bool   // it calls others
	begun  uint64 // basic blocks so far, about
	loops  uint64 // that are open
	inmost uint64 // the most loops within each other

	units  uint32 // the scratch local for units, i64
	length uint32 // the scratch local for a length, i32
	merge  int    // what a place where paths meet weighs: its locals may have to move

	blocks []block
	opened uint32 // blocks so far
	path   int    // weight since the last charge on the longest path to here, or dead
	last   [2]simple
}

// simple is an instruction with one operand that may begin a jump by a table; the latest is
// last[1]. All others leave the zero value.
type simple struct {
	op      byte // opI32Const, opLocalGet, opLocalSet or opLocalTee; 0: another
	at      int
	operand int64
}

// block is a structured instruction that has not ended.
type block struct {
	kind   byte // opBlock (a function too), opLoop, opIf, opElse
	start  int  // the path where it begins, for an else
	meet   int  // the longest path that jumps to its end, or dead
	serial uint32
	inside int    // where its code begins, if it has no parameters and results, else 0
	first  bool   // it is the first thing in the block around it, which has none either
	table  *table // of a loop that begins with one
}

// dead is the path of code that nothing reaches.
const dead = -1

// rewrite appends the rewritten function to the section.
func (f *body) rewrite(section []byte, t FuncType) []byte {
	limits := &f.parser.limits
	f.out, f.blocks, f.opened, f.calls = f.out[:0], f.blocks[:0], 0, false
	f.begun, f.loops, f.inmost = 0, 0, 0
	at := f.i
	groups := f.count("groups of locals", limits.Locals)
	from := f.i
	locals := uint64(0)
	for range groups {
		locals += uint64(f.u32())
		f.valueType()
	}
	if locals > uint64(limits.Locals) {
		f.i = at
		f.fail("%d locals in a function, at most %d are allowed", locals, limits.Locals)
	}
	head := appendU32(nil, groups+2)
	head = append(head, f.b[from:f.i]...)
	head = append(head, 1, byte(I64), 1, byte(I32))
	f.units = uint32(len(t.Params)) + uint32(locals)
	f.length = f.units + 1
	f.merge = max(0, int(locals)-64) / 16
	frame := leastFrame + int(f.units) + (len(f.b)-at)/16

	f.copied = f.i
	f.blocks = append(f.blocks, block{kind: opBlock, meet: dead})
	f.last = [2]simple{}
	f.path = f.merge // the locals are cleared
	f.charge(1)
	for len(f.blocks) > 0 {
		f.instruction()
	}
	if !f.done() {
		f.fail("a function goes on after its end")
	}
	f.flush()
	f.parser.spend(f, f.effort())

	var tail []byte
	if f.calls {
		head, tail = f.frame(head, int64(frame), t.Results)
	}
	section = appendU32(section, uint32(len(head)+len(f.out)+len(tail)))
	return append(append(append(section, head...), f.out...), tail...)
}

// effort estimates what the engine's work on the function grows with: the square of its basic
// blocks, by its locals, and the square of its locals, by its nested loops. One to five seconds a
// billion were measured; without a limit a function of 10 KB could take minutes. The largest
// functions that compilers make stay below a twentieth of it.
func (f *body) effort() uint64 {
	locals := uint64(f.units) + 1
	return f.begun*f.begun*min(locals, 1<<20) + 300*f.inmost*locals*locals
}

// spend refuses what would take the engine too long to compile.
func (p *parser) spend(f *body, effort uint64) {
	if p.effort += effort; effort > p.limits.Effort {
		f.fail("a function of %d basic blocks, %d nested loops and %d locals would take too long to compile", f.begun, f.inmost, f.units)
	}
	if p.effort > p.limits.TotalEffort {
		f.fail("the functions would take too long to compile")
	}
}

// frame returns what stands before and after a function that calls others: it takes its frame
// from the stack and gives it back. The code between is a block, so that every way out leads
// through its end.
func (f *body) frame(head []byte, words int64, results []ValueType) (before, after []byte) {
	depth := f.parser.depthGlobal()
	b := appendGlobal(head, opGlobalGet, depth)
	b = append(appendS64(append(b, opI32Const), words), opI32Add)
	b = appendU32(append(b, opLocalTee), f.length)
	b = appendGlobal(b, opGlobalSet, depth)
	b = appendU32(append(b, opLocalGet), f.length)
	b = appendS64(append(b, opI32Const), StackWords)
	b = append(b, opI32GtU, opIf, blockOfEmpty, opUnreachable, opEnd, opBlock)
	b = append(b, f.parser.blockTypeOf(results)...)

	a := appendGlobal(nil, opGlobalGet, depth)
	a = append(appendS64(append(a, opI32Const), words), opI32Sub)
	return b, append(appendGlobal(a, opGlobalSet, depth), opEnd)
}

// flush copies what has been read and not yet copied.
func (f *body) flush() {
	f.out = append(f.out, f.b[f.copied:f.i]...)
	f.copied = f.i
}

// settle charges for the way to here when it has become a stretch. It is called where an
// instruction may begin.
func (f *body) settle() {
	if f.path >= Stretch {
		f.charge(int64(f.path / Stretch))
		f.path %= Stretch
	}
}

// charge takes a fixed number of units from the slice.
func (f *body) charge(units int64) {
	f.flush()
	f.out = appendGlobal(f.out, opGlobalGet, f.parser.sliceGlobal())
	f.out = append(f.out, opI64Const)
	f.out = appendS64(f.out, units)
	f.deduct()
}

// chargeOperand takes units by the i32 on the stack, which stays there.
func (f *body) chargeOperand(shift int64) {
	f.flush()
	f.out = appendU32(append(f.out, opLocalTee), f.length)
	f.out = appendGlobal(f.out, opGlobalGet, f.parser.sliceGlobal())
	f.out = appendU32(append(f.out, opLocalGet), f.length)
	f.out = appendS64(append(f.out, opI64OfI32U, opI64Const), shift)
	f.out = append(f.out, opI64ShrU)
	f.deduct()
}

// deduct ends a charge: the slice and the units are on the stack.
func (f *body) deduct() {
	f.begun++
	f.out = appendU32(append(f.out, opI64Sub, opLocalTee), f.units)
	f.out = appendGlobal(f.out, opGlobalSet, f.parser.sliceGlobal())
	f.out = appendU32(append(f.out, opLocalGet), f.units)
	f.out = append(f.out, opI64Const, 0, opI64LtS, opIf, blockOfEmpty, opCall)
	f.out = appendU32(f.out, f.parser.refillFunction())
	f.out = append(f.out, opEnd)
}

// weigh adds an instruction to the path.
func (f *body) weigh(weight int) {
	if f.path != dead {
		f.path += weight
	}
}

func (f *body) instruction() {
	f.settle()
	at := f.i
	op := f.byte()
	before := f.last
	f.last = [2]simple{before[1]}
	if weight, ok := plain(op); ok {
		f.weigh(weight)
		return
	}
	switch op {
	case opBlock, opLoop, opIf, opElse, opEnd, opBr, opBrIf, opBrTable, opReturn, opUnreachable:
		f.control(op, at, before)
	case opCall:
		f.weigh(weightCall)
		f.calls = true
		if i := f.parser.functionIndex(f.reader); i < uint32(len(f.parser.imports)) {
			f.before(at, func() { f.charge(importCost) })
		}
	case opCallIndirect:
		f.weigh(weightCall)
		f.calls = true
		f.parser.typeIndex(f.reader)
		f.parser.tableIndex(f.reader)
	case opSelectTyped:
		f.weigh(weightPlain)
		if f.u32() != 1 {
			f.fail("a select of several values is not supported")
		}
		f.valueType()
	case opLocalGet, opLocalSet, opLocalTee:
		i := f.u32()
		if i >= f.units {
			f.fail("there is no local %d", i)
		}
		f.last[1] = simple{op, at, int64(i)}
	case opGlobalGet, opGlobalSet:
		f.weigh(weightMemory)
		f.parser.globalIndex(f.reader)
	case opTableGet, opTableSet:
		f.weigh(weightMemory)
		f.parser.tableIndex(f.reader)
	case opMemorySize:
		f.weigh(weightPlain)
		f.zero()
	case opMemoryGrow:
		f.weigh(weightCall)
		f.zero()
		f.before(at, func() { f.charge(growCost) })
	case opI32Const:
		f.last[1] = simple{op, at, f.s33()}
	case opI64Const:
		f.signed(10)
	case opF32Const:
		f.take(4)
	case opF64Const:
		f.take(8)
	case opRefNull:
		f.refType()
	case opRefFunc:
		f.weigh(weightCall)
		f.parser.functionIndex(f.reader)
	case opMisc:
		f.misc(at)
	case opVector:
		f.weigh(f.vector())
	default:
		if op < opMemoryFirst || op > opMemoryLast {
			f.i = at
			f.fail("instruction %#x is not supported", op)
		}
		f.weigh(weightMemory)
		f.memoryOperand()
	}
}

// before puts something in front of the instruction that began at a place and was read.
func (f *body) before(at int, put func()) {
	end := f.i
	f.i = at
	put()
	f.i = end
}

func (f *body) misc(at int) {
	op := f.byte()
	f.weigh(weightMemory)
	charge := func(shift int64) { f.before(at, func() { f.chargeOperand(shift) }) }
	switch op {
	case miscMemoryInit:
		f.dataIndex()
		f.zero()
		charge(memoryShift)
	case miscMemoryCopy:
		f.zero()
		f.zero()
		charge(memoryShift)
	case miscMemoryFill:
		f.zero()
		charge(memoryShift)
	case miscDataDrop:
		f.dataIndex()
	case miscElemDrop:
		f.elementIndex()
	case miscTableInit:
		f.elementIndex()
		f.parser.tableIndex(f.reader)
		charge(tableShift)
	case miscTableCopy:
		f.parser.tableIndex(f.reader)
		f.parser.tableIndex(f.reader)
		charge(tableShift)
	case miscTableGrow, miscTableFill:
		f.parser.tableIndex(f.reader)
		charge(tableShift)
	case miscTableSize:
		f.parser.tableIndex(f.reader)
	default:
		if op > miscTruncateLast {
			f.i = at
			f.fail("instruction 0xfc %#x is not supported", op)
		}
	}
}

// dataIndex reads the index of a data segment. The segments come after the code, their count
// before it.
func (f *body) dataIndex() {
	if i := f.u32(); int64(i) >= f.parser.promised {
		f.fail("there is no data segment %d", i)
	}
}

func (f *body) elementIndex() {
	if i := f.u32(); i >= f.parser.elements {
		f.fail("there is no element segment %d", i)
	}
}
