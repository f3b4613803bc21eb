package meter

import "slices"

// What is added stands at the end of each list, so that no index of the module's own moves:
// types, a function, and four globals.

func (p *parser) refillType() uint32     { return uint32(len(p.types)) }
func (p *parser) refillFunction() uint32 { return uint32(len(p.functions)) }
func (p *parser) sliceGlobal() uint32    { return p.globals }
func (p *parser) budgetGlobal() uint32   { return p.globals + 1 }
func (p *parser) killGlobal() uint32     { return p.globals + 2 }
func (p *parser) depthGlobal() uint32    { return p.globals + 3 }

// blockTypeOf returns the type of a block with the given results. One with several needs a
// function type, which is added.
func (p *parser) blockTypeOf(results []ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{blockOfEmpty}
	case 1:
		return []byte{byte(results[0])}
	}
	key := string(typeBytes(results))
	i, known := p.addedTypes[key]
	if !known {
		if p.addedTypes == nil {
			p.addedTypes = map[string]uint32{}
		}
		i = p.refillType() + 1 + uint32(len(p.addedTypes))
		p.addedTypes[key] = i
		p.added = append(appendU32(append(p.added, 0x60, 0), uint32(len(results))), typeBytes(results)...)
	}
	return appendS64(nil, int64(i))
}

func typeBytes(list []ValueType) []byte {
	b := make([]byte, len(list))
	for i, t := range list {
		b[i] = byte(t)
	}
	return b
}

// write puts the rewritten module together. Custom sections are left out.
func (p *parser) write() []byte {
	out := append(make([]byte, 0, len(p.b)+len(p.codes)/8+512), p.b[:8]...)
	emit := func(id byte, body []byte) {
		out = appendU32(append(out, id), uint32(len(body)))
		out = append(out, body...)
	}
	own := func(id byte) {
		if p.bodies[id] != nil {
			emit(id, p.bodies[id])
		}
	}
	emit(sectionType, p.longer(sectionType, 1+uint32(len(p.addedTypes)), append([]byte{0x60, 0, 0}, p.added...)...))
	own(sectionImport)
	emit(sectionFunction, p.longer(sectionFunction, 1, appendU32(nil, p.refillType())...))
	own(sectionTable)
	own(sectionMemory)
	counter := []byte{byte(I64), 1, opI64Const, 0, opEnd}
	counters := slices.Concat(counter, counter, counter, []byte{byte(I32), 1, opI32Const, 0, opEnd})
	emit(sectionGlobal, p.longer(sectionGlobal, 4, counters...))
	emit(sectionExport, p.longer(sectionExport, 4, p.counters()...))
	own(sectionElement)
	own(sectionDataCount)
	refill := p.refill()
	code := appendU32(nil, uint32(len(p.functions)-len(p.imports)+1))
	code = append(code, p.codes...)
	emit(sectionCode, append(appendU32(code, uint32(len(refill))), refill...))
	own(sectionData)
	return out
}

// longer returns a section with items added to its list.
func (p *parser) longer(id byte, items uint32, added ...byte) []byte {
	r := reader{b: p.bodies[id]}
	n := uint32(0)
	if len(r.b) > 0 {
		n = r.u32()
	}
	body := append(make([]byte, 0, len(r.b)+len(added)+5), appendU32(nil, n+items)...)
	return append(append(body, r.b[r.i:]...), added...)
}

// counters are the exports of the added globals.
func (p *parser) counters() []byte {
	var b []byte
	for i, name := range []string{SliceGlobal, BudgetGlobal, KillGlobal, DepthGlobal} {
		b = append(appendU32(b, uint32(len(name))), name...)
		b = appendU32(append(b, byte(Global)), p.globals+uint32(i))
	}
	return b
}

// refill is the function that is called when a slice is used up. In words:
//
//	need = max(Slice, -slice)
//	budget -= need; if budget < 0, trap
//	slice += need
//	memory.grow(0): out to Go and back
//	if kill != 0, trap
func (p *parser) refill() []byte {
	const need = 0 // the only local
	b := []byte{1, 1, byte(I64)}
	global := func(op byte, i uint32) { b = appendGlobal(b, op, i) }
	slice := func() { b = appendS64(append(b, opI64Const), Slice) }

	b = append(b, opI64Const, 0)
	global(opGlobalGet, p.sliceGlobal())
	b = append(b, opI64Sub, opLocalTee, need)
	slice()
	b = append(b, opLocalGet, need)
	slice()
	b = append(b, opI64GtS, opSelect, opLocalSet, need)

	global(opGlobalGet, p.budgetGlobal())
	b = append(b, opLocalGet, need, opI64Sub)
	global(opGlobalSet, p.budgetGlobal())
	global(opGlobalGet, p.budgetGlobal())
	b = append(b, opI64Const, 0, opI64LtS, opIf, blockOfEmpty, opUnreachable, opEnd)

	global(opGlobalGet, p.sliceGlobal())
	b = append(b, opLocalGet, need, opI64Add)
	global(opGlobalSet, p.sliceGlobal())

	b = append(b, opI32Const, 0, opMemoryGrow, 0, opDrop)
	global(opGlobalGet, p.killGlobal())
	b = append(b, opI64Const, 0, opI64Ne, opIf, blockOfEmpty, opUnreachable, opEnd)
	return append(b, opEnd)
}

func appendGlobal(b []byte, op byte, index uint32) []byte {
	return appendU32(append(b, op), index)
}
