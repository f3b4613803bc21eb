package meter

// control reads a structured instruction or a jump.
func (f *body) control(op byte) {
	switch op {
	case opBlock, opLoop, opIf:
		f.blockType()
		f.open(op)
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
		f.jump()
		f.path = dead
	case opBrIf:
		f.weigh(weightPlain)
		f.begun++
		f.jump()
	case opBrTable:
		f.weigh(weightMemory)
		n := uint64(f.count("targets", uint32(len(f.b)))) + 1
		f.begun += (n + 3) / 4
		for range n {
			f.jump()
		}
		f.path = dead
	case opReturn: // as a jump to the end, where the frame is given back
		end := f.i
		f.i--
		f.flush()
		f.i, f.copied = end, end
		f.out = appendU32(append(f.out, opBr), uint32(len(f.blocks)-1))
		f.path = dead
	case opUnreachable:
		f.path = dead
	}
}

func (f *body) blockType() {
	at := f.i
	t := f.s33()
	switch {
	case t >= 0:
		if t >= int64(len(f.parser.types)) {
			f.i = at
			f.fail("there is no type %d", t)
		}
	case t < -64:
		f.i = at
		f.fail("a block's type is not known")
	case t != -64: // empty
		f.i = at
		f.valueType()
	}
}

func (f *body) open(op byte) {
	if len(f.blocks) > int(f.parser.limits.Depth) {
		f.fail("blocks nested deeper than %d", f.parser.limits.Depth)
	}
	if op == opIf {
		f.weigh(weightPlain)
	}
	f.blocks = append(f.blocks, block{kind: op, start: f.path, meet: dead})
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

// jump reads a jump's target. One to a loop goes to a charge, and needs no further thought.
func (f *body) jump() {
	depth := f.u32()
	if uint64(depth) >= uint64(len(f.blocks)) {
		f.fail("a jump out of the function")
	}
	if b := &f.blocks[len(f.blocks)-1-int(depth)]; b.kind != opLoop && f.path != dead {
		b.meet = max(b.meet, f.path)
	}
}
