// Package wasmtest owns a small encoder of Wasm modules, with which tests build guests byte by
// byte: honest ones, hostile ones and broken ones. It checks nothing, on purpose, and is
// imported by tests only.
package wasmtest

// Value types.
const (
	I32  = 0x7f
	I64  = 0x7e
	F64  = 0x7c
	V128 = 0x7b
)

// Func is one function. Locals are of type i32 unless LocalType is set.
type Func struct {
	Export    string
	Params    []byte
	Results   []byte
	Locals    int
	LocalType byte
	Body      []byte // without the closing end
}

// Import is one imported function.
type Import struct {
	Module, Name    string
	Params, Results []byte
}

// Module is a module with one memory. Functions have the indices after the imports, in order.
type Module struct {
	Imports   []Import
	Funcs     []Func
	Pages     int  // of memory
	NoMemory  bool // leave the memory out
	Hidden    bool // do not export the memory
	Table     int  // entries of a table of functions, filled with Funcs from its start
	Globals   int  // mutable i32 globals, zero at the start
	Data      []byte
	DataAt    int
	Passive   []byte // one passive data segment, index 0 or 1 after Data
	Custom    map[string][]byte
	StartFunc int // 1 + index of a start function
}

// Encode returns the binary.
func (m Module) Encode() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, n int, items []byte) {
		if n == 0 {
			return
		}
		out = append(out, id)
		body := append(U32(uint32(n)), items...)
		out = append(append(out, U32(uint32(len(body)))...), body...)
	}
	vec := func(b []byte) []byte { return append(U32(uint32(len(b))), b...) }
	str := func(s string) []byte { return vec([]byte(s)) }
	signature := func(params, results []byte) []byte {
		return append(append([]byte{0x60}, vec(params)...), vec(results)...)
	}

	var types, imports, functions, exports, codes []byte
	for i, f := range m.Imports {
		types = append(types, signature(f.Params, f.Results)...)
		imports = append(append(imports, str(f.Module)...), str(f.Name)...)
		imports = append(append(imports, 0), U32(uint32(i))...)
	}
	exported := 0
	export := func(name string, kind byte, index int) {
		exports = append(append(append(exports, str(name)...), kind), U32(uint32(index))...)
		exported++
	}
	for i, f := range m.Funcs {
		index := len(m.Imports) + i
		types = append(types, signature(f.Params, f.Results)...)
		functions = append(functions, U32(uint32(index))...)
		if f.Export != "" {
			export(f.Export, 0, index)
		}
		body := []byte{0}
		if f.Locals > 0 {
			t := f.LocalType
			if t == 0 {
				t = I32
			}
			body = append(append([]byte{1}, U32(uint32(f.Locals))...), t)
		}
		codes = append(codes, vec(append(append(body, f.Body...), 0x0b))...)
	}
	if !m.NoMemory && !m.Hidden {
		export("memory", 2, 0)
	}

	section(1, len(m.Imports)+len(m.Funcs), types)
	section(2, len(m.Imports), imports)
	section(3, len(m.Funcs), functions)
	if m.Table > 0 {
		section(4, 1, append([]byte{0x70, 0}, U32(uint32(m.Table))...))
	}
	if !m.NoMemory {
		section(5, 1, append([]byte{0}, U32(uint32(m.Pages))...))
	}
	var globals []byte
	for range m.Globals {
		globals = append(globals, I32, 1, 0x41, 0, 0x0b)
	}
	section(6, m.Globals, globals)
	section(7, exported, exports)
	if m.StartFunc > 0 {
		start := U32(uint32(m.StartFunc - 1))
		out = append(append(out, 8, byte(len(start))), start...)
	}
	if m.Table > 0 {
		elements := append([]byte{0, 0x41, 0, 0x0b}, U32(uint32(len(m.Funcs)))...)
		for i := range m.Funcs {
			elements = append(elements, U32(uint32(len(m.Imports)+i))...)
		}
		section(9, 1, elements)
	}
	var data []byte
	segments := 0
	if len(m.Data) > 0 {
		data = append(append(data, 0), I32Const(int32(m.DataAt))...)
		data = append(append(data, 0x0b), vec(m.Data)...)
		segments++
	}
	if len(m.Passive) > 0 {
		data = append(append(data, 1), vec(m.Passive)...)
		segments++
		out = append(out, 12, 1, byte(segments))
	}
	section(10, len(m.Funcs), codes)
	section(11, segments, data)
	for name, b := range m.Custom {
		s := append(str(name), b...)
		out = append(append(append(out, 0), U32(uint32(len(s)))...), s...)
	}
	return out
}

// U32 returns a number as unsigned LEB128.
func U32(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// S64 returns a number as signed LEB128.
func S64(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
