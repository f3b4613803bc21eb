package meter

// control reads a structured instruction or a jump, which begins at that place; before are the
// two instructions in front of it.
func (f *body) control(op byte, at int, before [2]simple) {
	switch op {
	case opBlock, opLoop, opIf:
		f.open(op, at, f.blockType())
	case opElse:
		b := f.top()
		if b.kind != opIf {
			f.fail("an else without an if")
		}
		b.meet = max(b.meet, f.path)
		b.kind, f.path = opElse, b.start
	case opEnd:
		f.end()
	case opBr:
		f.weigh(weightPlain)
		depth := f.depth()
		if direct, ok := f.ahead(depth, before); ok {
			depth = direct
			f.replace(at, depth)
		}
		f.meet(depth)
		f.path = dead
	case opBrIf:
		f.weigh(weightPlain)
		f.begun++
		f.meet(f.depth())
	case opBrTable:
		f.weigh(weightMemory)
		n := uint64(f.count("targets", uint32(len(f.b)))) + 1
		f.begun += (n + 3) / 4
		t := f.tableOf(before[1])
		for range n {
			depth := f.depth()
			f.meet(depth)
			if t != nil {
				t.targets = append(t.targets, f.target(depth).serial)
			}
		}
		f.path = dead
	case opReturn: // as a jump to the end, where the frame is given back
		f.replace(at, uint32(len(f.blocks)-1))
		f.path = dead
	case opUnreachable:
		f.path = dead
	}
}

// replace puts a jump in the place of the instruction that began there and was read.
func (f *body) replace(at int, depth uint32) {
	end := f.i
	f.i = at
	f.flush()
	f.i, f.copied = end, end
	f.out = appendU32(append(f.out, opBr), depth)
}

// blockType reads the type of a block and says whether it is the empty one.
func (f *body) blockType() (empty bool) {
	at := f.i
	t := f.s33()
	switch {
	case t == -64:
		return true
	case t >= 0:
		if t >= int64(len(f.parser.types)) {
			f.i = at
			f.fail("there is no type %d", t)
		}
	case t < -64:
		f.i = at
		f.fail("a block's type is not known")
	default:
		f.i = at
		f.valueType()
	}
	return false
}

// open begins a block whose instruction began at that place.
func (f *body) open(op byte, at int, empty bool) {
	if len(f.blocks) > int(f.parser.limits.Depth) {
		f.fail("blocks nested deeper than %d", f.parser.limits.Depth)
	}
	if op == opIf {
		f.weigh(weightPlain)
	}
	f.opened++
	b := block{kind: op, start: f.path, meet: dead, serial: f.opened, first: f.top().inside == at}
	if empty {
		b.inside = f.i
	}
	f.blocks = append(f.blocks, b)
	f.begun++
	if op == opLoop {
		f.loops++
		f.inmost = max(f.inmost, f.loops)
		if f.path != dead {
			f.path = f.path%Stretch + f.merge
		}
		f.charge(1)
	}
}

func (f *body) top() *block { return &f.blocks[len(f.blocks)-1] }

func (f *body) end() {
	b := *f.top()
	f.blocks = f.blocks[:len(f.blocks)-1]
	if b.kind == opLoop {
		f.loops--
	}
	if b.kind == opIf { // without an else: the condition may have jumped here
		b.meet = max(b.meet, b.start)
	}
	if b.kind == opLoop || b.meet == dead {
		return
	}
	f.path = max(f.path, b.meet) + f.merge
}

// depth reads how many blocks a jump leaves.
func (f *body) depth() uint32 {
	depth := f.u32()
	if uint64(depth) >= uint64(len(f.blocks)) {
		f.fail("a jump out of the function")
	}
	return depth
}

func (f *body) target(depth uint32) *block { return &f.blocks[len(f.blocks)-1-int(depth)] }

// meet notes that a path leads to the end of the block at that depth. One to a loop goes to a
// charge, and needs no further thought.
func (f *body) meet(depth uint32) {
	if b := f.target(depth); b.kind != opLoop && f.path != dead {
		b.meet = max(b.meet, f.path)
	}
}
