package meter

import (
	"math"
	"strings"
)

func (p *parser) typeSection(s *reader) {
	values := func() []ValueType {
		n := s.count("values in a type", p.limits.Values)
		list := make([]ValueType, n)
		for i := range list {
			list[i] = s.valueType()
		}
		return list
	}
	for range s.count("types", p.limits.Types) {
		if form := s.byte(); form != 0x60 {
			s.fail("type form %#x is not known", form)
		}
		params := values()
		p.types = append(p.types, FuncType{params, values()})
	}
}

func (p *parser) importSection(s *reader) {
	for range s.count("imports", p.limits.Imports) {
		module, name := s.name(), s.name()
		if kind := s.byte(); kind != 0 {
			s.fail("import %s.%s is not a function", module, name)
		}
		t := p.typeIndex(s)
		p.functions = append(p.functions, t)
		p.imports = append(p.imports, Import{module, name, p.types[t]})
	}
}

// bounds reads how small something is at the start.
func (r *reader) bounds() uint32 {
	flag := r.byte()
	if flag > 1 {
		r.fail("shared or 64-bit limits are not supported")
	}
	least := r.u32()
	if flag == 1 {
		r.u32()
	}
	return least
}

func (p *parser) tableSection(s *reader) {
	for range s.count("tables", p.limits.Tables) {
		s.refType()
		n := s.bounds()
		if uint64(p.entries)+uint64(n) > uint64(p.limits.TableEntries) {
			s.fail("tables of more than %d entries", p.limits.TableEntries)
		}
		p.entries += n
		p.tables++
	}
}

func (p *parser) memorySection(s *reader) {
	p.memories = s.count("memories", 1)
	if p.memories == 0 {
		return
	}
	if p.pages = s.bounds(); p.pages > p.limits.MemoryPages {
		s.fail("a memory of %d pages at the start, at most %d are allowed", p.pages, p.limits.MemoryPages)
	}
}

func (p *parser) exportSection(s *reader) {
	seen := map[string]bool{}
	for range s.count("exports", p.limits.Exports) {
		e := Export{Name: s.name()}
		if strings.HasPrefix(e.Name, Prefix) {
			s.fail("the export %s has a name of the host's", e.Name)
		}
		if seen[e.Name] {
			s.fail("the export %s stands twice", e.Name)
		}
		seen[e.Name] = true
		switch e.Kind = Kind(s.byte()); e.Kind {
		case Function:
			e.Type = p.types[p.functions[p.functionIndex(s)]]
		case Table:
			p.tableIndex(s)
		case Memory:
			if s.u32() >= p.memories {
				s.fail("there is no such memory")
			}
		case Global:
			p.globalIndex(s)
		default:
			s.fail("an export of kind %d is not known", e.Kind)
		}
		p.exports = append(p.exports, e)
	}
}

// constant reads an expression that is one constant.
func (p *parser) constant(s *reader) {
	switch op := s.byte(); op {
	case opI32Const:
		s.signed(5)
	case opI64Const:
		s.signed(10)
	case opF32Const:
		s.take(4)
	case opF64Const:
		s.take(8)
	case opRefNull:
		s.refType()
	case opRefFunc:
		p.functionIndex(s)
	case opVector:
		if s.byte() != vectorConst {
			s.fail("an expression is not constant")
		}
		s.take(16)
	default:
		s.i--
		s.fail("an expression is not constant")
	}
	if s.byte() != opEnd {
		s.i--
		s.fail("a constant expression is longer than one constant")
	}
}

// element reads one element segment: bit 0 passive or declarative, bit 1 with a table's index
// or declarative, bit 2 expressions in place of indices.
func (p *parser) element(s *reader) {
	form := s.u32()
	if form > 7 {
		s.fail("element segment form %d is not known", form)
	}
	if form&1 == 0 {
		if form&2 != 0 {
			p.tableIndex(s)
		} else if p.tables == 0 {
			s.fail("an element segment without a table")
		}
		p.constant(s)
	}
	if form&3 != 0 {
		if form&4 != 0 {
			s.refType()
		} else if s.byte() != 0 {
			s.fail("an element kind is not known")
		}
	}
	for range s.count("elements", math.MaxUint32) {
		if form&4 != 0 {
			p.constant(s)
		} else {
			p.functionIndex(s)
		}
	}
}

func (p *parser) dataSection(s *reader) {
	p.segments = s.count("data segments", p.limits.DataSegments)
	size := uint64(0)
	for range p.segments {
		switch s.u32() {
		case 0:
			p.constant(s)
		case 1:
		case 2:
			s.zero()
			p.constant(s)
		default:
			s.fail("a data segment's form is not known")
		}
		n := s.u32()
		s.take(n)
		if size += uint64(n); size > uint64(p.limits.DataSize) {
			s.fail("data segments of more than %d bytes", p.limits.DataSize)
		}
	}
}
