package meter

import "strings"

// ValueType is a type of a value, by its byte in the binary format.
type ValueType byte

const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

var typeNames = map[ValueType]string{
	I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128", FuncRef: "funcref", ExternRef: "externref",
}

// FuncType is the type of a function.
type FuncType struct{ Params, Results []ValueType }

// String returns the type as the text format has it, "(i32, i64) -> (i32)".
func (t FuncType) String() string {
	list := func(l []ValueType) string {
		names := make([]string, len(l))
		for i, v := range l {
			names[i] = typeNames[v]
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	return list(t.Params) + " -> " + list(t.Results)
}

// Import is a function that a module wants.
type Import struct {
	Module, Name string
	Type         FuncType
}

// Kind is what an export is.
type Kind byte

const (
	Function Kind = iota
	Table
	Memory
	Global
)

// Export is what a module offers.
type Export struct {
	Name string
	Kind Kind
	Type FuncType // of a function
}

// Module is a rewritten module and what it says of itself.
type Module struct {
	Code        []byte // the rewritten module
	Imports     []Import
	Exports     []Export
	MemoryPages uint32 // at the start, 64 KiB each
}

// Rewrite reads a module and returns it with its work counted. The error is an *Error.
// It takes time in proportion to the module's size.
func Rewrite(module []byte, limits Limits) (m *Module, err error) {
	p := &parser{limits: limits, reader: reader{b: module}}
	defer func() {
		if caught := recover(); caught != nil {
			refused, ok := caught.(*Error)
			if !ok {
				panic(caught)
			}
			m, err = nil, refused
		}
	}()
	p.module()
	return &Module{Code: p.write(), Imports: p.imports, Exports: p.exports, MemoryPages: p.pages}, nil
}

// The sections by their number.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sections
)

// order is where a section stands in a module: the count of data segments comes before the code.
var order = [sections]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5,
	sectionGlobal: 6, sectionExport: 7, sectionStart: 8, sectionElement: 9, sectionDataCount: 10,
	sectionCode: 11, sectionData: 12,
}

// parser holds what it has read of a module.
type parser struct {
	reader
	limits Limits

	bodies [sections][]byte // of each section, nil where there is none
	types  []FuncType
	// functions are the types of all functions, the imported ones first.
	functions []uint32
	imports   []Import
	exports   []Export
	tables    uint32
	entries   uint32
	memories  uint32
	pages     uint32
	globals   uint32
	elements  uint32
	segments  uint32 // of data
	promised  int64  // data segments by the count section, or -1
	codes     []byte // the rewritten code section
	effort    uint64 // of compiling it, by an estimate

	addedTypes map[string]uint32 // of blocks, by their results
	added      []byte            // their encoding
}

func (p *parser) module() {
	if string(p.take(min(8, uint32(len(p.b))))) != "\x00asm\x01\x00\x00\x00" {
		p.i = 0
		p.fail("this is not a Wasm module")
	}
	p.promised = -1
	last, custom := 0, uint64(0)
	for !p.done() {
		at := p.i
		id := p.byte()
		size := p.u32()
		if id >= sections {
			p.i = at
			p.fail("section %d is not known", id)
		}
		s := p.part(size)
		if id == sectionCustom {
			s.name()
			if custom += uint64(size); custom > uint64(p.limits.CustomSection) {
				p.fail("custom sections of more than %d bytes", p.limits.CustomSection)
			}
			continue
		}
		if order[id] <= last {
			p.i = at
			p.fail("section %d is out of order", id)
		}
		last = order[id]
		p.bodies[id] = s.b[s.i:]
		p.section(id, s)
		if !s.done() {
			s.fail("section %d goes on after its end", id)
		}
	}
	if len(p.functions)-len(p.imports) > 0 && p.bodies[sectionCode] == nil {
		p.fail("functions without code")
	}
	if p.memories != 1 {
		p.fail("a module must have a memory")
	}
	if p.promised >= 0 && p.promised != int64(p.segments) {
		p.fail("the count of data segments is wrong")
	}
}

func (p *parser) section(id byte, s *reader) {
	switch id {
	case sectionType:
		p.typeSection(s)
	case sectionImport:
		p.importSection(s)
	case sectionFunction:
		for range s.count("functions", p.limits.Functions) {
			p.functions = append(p.functions, p.typeIndex(s))
		}
	case sectionTable:
		p.tableSection(s)
	case sectionMemory:
		p.memorySection(s)
	case sectionGlobal:
		for range s.count("globals", p.limits.Globals) {
			s.valueType()
			if s.byte() > 1 {
				s.fail("a global is neither constant nor mutable")
			}
			p.constant(s)
			p.globals++
		}
	case sectionExport:
		p.exportSection(s)
	case sectionStart:
		s.fail("a start function is not supported: use _initialize")
	case sectionElement:
		for range s.count("element segments", p.limits.Elements) {
			p.element(s)
			p.elements++
		}
	case sectionDataCount:
		p.promised = int64(s.u32())
	case sectionCode:
		p.codeSection(s)
	case sectionData:
		p.dataSection(s)
	}
}

func (r *reader) valueType() ValueType {
	t := ValueType(r.byte())
	if _, known := typeNames[t]; !known {
		r.i--
		r.fail("value type %#x is not known", byte(t))
	}
	return t
}

func (r *reader) refType() {
	if t := r.valueType(); t != FuncRef && t != ExternRef {
		r.fail("%s is not a reference", typeNames[t])
	}
}

func (p *parser) typeIndex(s *reader) uint32 {
	i := s.u32()
	if i >= uint32(len(p.types)) {
		s.fail("there is no type %d", i)
	}
	return i
}

func (p *parser) functionIndex(s *reader) uint32 {
	i := s.u32()
	if i >= uint32(len(p.functions)) {
		s.fail("there is no function %d", i)
	}
	return i
}

func (p *parser) tableIndex(s *reader) {
	if i := s.u32(); i >= p.tables {
		s.fail("there is no table %d", i)
	}
}

func (p *parser) globalIndex(s *reader) {
	if i := s.u32(); i >= p.globals {
		s.fail("there is no global %d", i)
	}
}
