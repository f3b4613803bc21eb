package meter_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// returning is a module with one function that returns an i32.
func returning(body ...any) Module {
	return Module{Pages: 1, Funcs: []Func{{Export: "f", Results: []byte{I32}, Body: Code(body...)}}}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	good := returning(I32Const(1))
	with := func(change func(*Module)) []byte {
		m := good
		m.Funcs = append([]Func(nil), good.Funcs...)
		change(&m)
		return m.Encode()
	}
	raw := func(tail ...any) []byte { return append([]byte("\x00asm\x01\x00\x00\x00"), Code(tail...)...) }
	code := func(body ...any) []byte { return returning(body...).Encode() }

	for name, c := range map[string]struct {
		module []byte
		reason string
	}{
		"nothing":              {nil, "not a Wasm module"},
		"text":                 {[]byte("hello, this is not Wasm"), "not a Wasm module"},
		"a component":          {[]byte("\x00asm\x0d\x00\x01\x00"), "not a Wasm module"},
		"cut off":              {good.Encode()[:32], "ends too early"},
		"unknown section":      {raw(99, 0), "section 99 is not known"},
		"a tag section":        {raw(13, 1, 0), "section 13 is not known"},
		"section order":        {raw(3, 1, 0, 1, 1, 0), "out of order"},
		"a section twice":      {raw(1, 1, 0, 1, 1, 0), "out of order"},
		"trailing bytes":       {raw(1, 2, 0, 0), "goes on after its end"},
		"huge count":           {raw(1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f), "types"},
		"number too large":     {raw(1, 5, 0xff, 0xff, 0xff, 0xff, 0x7f), "exceeds 32 bits"},
		"no memory":            {with(func(m *Module) { m.NoMemory = true }), "must have a memory"},
		"two memories":         {raw(5, 5, 2, 0, 1, 0, 1), "2 memories"},
		"shared memory":        {raw(5, 4, 1, 3, 1, 1), "shared or 64-bit"},
		"memory too large":     {with(func(m *Module) { m.Pages = 5000 }), "5000 pages"},
		"table too large":      {with(func(m *Module) { m.Table = 1 << 20 }), "entries"},
		"start function":       {with(func(m *Module) { m.StartFunc = 1 }), "start function"},
		"the host's name":      {with(func(m *Module) { m.Funcs[0].Export = "interlock_meter_kill" }), "a name of the host's"},
		"an export twice":      {with(func(m *Module) { m.Funcs = append(m.Funcs, m.Funcs[0]) }), "stands twice"},
		"imported memory":      {raw(2, 8, 1, 1, 'a', 1, 'm', 2, 0, 1), "is not a function"},
		"imported global":      {raw(2, 8, 1, 1, 'a', 1, 'g', 3, I32, 0), "is not a function"},
		"too many locals":      {with(func(m *Module) { m.Funcs[0].Locals = 1 << 28 }), "locals"},
		"atomics":              {code(0xfe, 0x10, 2, 0), "0xfe"},
		"tail call":            {code(0x12, 0), "0x12"},
		"indirect tail call":   {code(0x13, 0, 0), "0x13"},
		"try_table":            {code(0x1f, 0x40, 0), "0x1f"},
		"throw":                {code(0x08, 0), "0x8"},
		"call_ref":             {code(0x14, 0), "0x14"},
		"relaxed SIMD":         {code(0xfd, 0x80, 2), "vector instruction"},
		"SIMD gap":             {code(0xfd, 0x9a, 1), "vector instruction"},
		"SIMD in long form":    {code(0xfd, 0x8c, 0), "vector instruction"},
		"misc in long form":    {code(0xfc, 0x8a, 0, 0, 0), "0xfc"},
		"wide arithmetic":      {code(0xfc, 0x13), "0xfc"},
		"second memory":        {code(I32Const(0), 0x28, 0x42, 0, 0), "several memories"},
		"memory.grow 1":        {code(I32Const(0), 0x40, 1), "several memories"},
		"the slice":            {code(0x23, 0), "no global 0"},
		"set the budget":       {code(I64Const(1<<40), 0x24, 1), "no global 1"},
		"call the refill":      {code(Call(1), I32Const(1)), "no function 1"},
		"refer to the refill":  {code(0xd2, 1, Drop, I32Const(1)), "no function 1"},
		"the scratch local":    {code(Get(0)), "no local 0"},
		"the refill's type":    {code(0x02, 1, End, I32Const(0)), "no type 1"},
		"an absent table":      {code(I32Const(0), 0x11, 0, 0), "no table 0"},
		"a jump too far":       {code(Br(9)), "out of the function"},
		"else without if":      {code(0x02, 0x40, Else, End, I32Const(0)), "else without an if"},
		"after the end":        {code(I32Const(0), End, 0x01), "after its end"},
		"no end":               {code(I32Const(0), 0x02, 0x40), "too early"},
		"unknown value type":   {code(0x02, 0x69, End, I32Const(0)), "value type"},
		"long constant":        {code(0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0), "too long"},
		"absent data segment":  {code(I32Const(0), I32Const(0), I32Const(0), 0xfc, 8, 0, 0, I32Const(0)), "no data segment"},
		"absent element":       {code(0xfc, 13, 0, I32Const(0)), "no element segment"},
		"more targets than it": {code(I32Const(0), 0x0e, 0xff, 0xff, 3), "targets"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := meter.Rewrite(c.module, meter.DefaultLimits())
			require.ErrorContains(t, err, c.reason)
			var refused *meter.Error
			require.ErrorAs(t, err, &refused)
			require.LessOrEqual(t, refused.Offset, len(c.module))
		})
	}
}

func TestARewrittenModuleIsNotRewrittenAgain(t *testing.T) {
	m, err := meter.Rewrite(returning(I32Const(1)).Encode(), meter.DefaultLimits())
	require.NoError(t, err)
	_, err = meter.Rewrite(m.Code, meter.DefaultLimits())
	require.ErrorContains(t, err, "interlock_meter_slice has a name of the host's")
}

func TestLimitsHold(t *testing.T) {
	big := Module{
		Imports: []Import{{Module: "a", Name: "b"}, {Module: "a", Name: "c"}},
		Funcs: []Func{
			{Export: "f", Params: []byte{I32, I32}, Locals: 7, Body: Block(Block(Repeat(10, 0x01)))},
			{Export: "g"},
		},
		Pages: 3, Table: 5, Globals: 4, Data: []byte("0123456789"), Passive: []byte("abc"),
		Custom: map[string][]byte{"x": make([]byte, 100)},
	}.Encode()
	_, err := meter.Rewrite(big, meter.DefaultLimits())
	require.NoError(t, err)
	for name, lower := range map[string]func(*meter.Limits){
		"types":     func(l *meter.Limits) { l.Types = 3 },
		"values":    func(l *meter.Limits) { l.Values = 1 },
		"imports":   func(l *meter.Limits) { l.Imports = 1 },
		"functions": func(l *meter.Limits) { l.Functions = 1 },
		"body":      func(l *meter.Limits) { l.BodySize = 10 },
		"locals":    func(l *meter.Limits) { l.Locals = 6 },
		"depth":     func(l *meter.Limits) { l.Depth = 1 },
		"tables":    func(l *meter.Limits) { l.Tables = 0 },
		"entries":   func(l *meter.Limits) { l.TableEntries = 4 },
		"pages":     func(l *meter.Limits) { l.MemoryPages = 2 },
		"globals":   func(l *meter.Limits) { l.Globals = 3 },
		"exports":   func(l *meter.Limits) { l.Exports = 2 },
		"elements":  func(l *meter.Limits) { l.Elements = 0 },
		"segments":  func(l *meter.Limits) { l.DataSegments = 1 },
		"data":      func(l *meter.Limits) { l.DataSize = 12 },
		"custom":    func(l *meter.Limits) { l.CustomSection = 99 },
		"effort":    func(l *meter.Limits) { l.Effort = 10 },
		"all":       func(l *meter.Limits) { l.TotalEffort = 20 },
	} {
		l := meter.DefaultLimits()
		lower(&l)
		_, err := meter.Rewrite(big, l)
		require.Error(t, err, name)
	}
}

func TestAModuleSaysWhatItWantsAndOffers(t *testing.T) {
	m, err := meter.Rewrite(Module{
		Imports: []Import{{Module: "interlock", Name: "log", Params: []byte{I32, I32, I32}}},
		Funcs:   []Func{{Export: "f", Params: []byte{I32}, Results: []byte{I64}, Body: I64Const(0)}},
		Pages:   2, Custom: map[string][]byte{"name": {1, 2, 3}},
	}.Encode(), meter.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, []meter.Import{{Module: "interlock", Name: "log", Type: meter.FuncType{[]meter.ValueType{I32, I32, I32}, []meter.ValueType{}}}}, m.Imports)
	require.Equal(t, "(i32, i32, i32) -> ()", m.Imports[0].Type.String())
	require.Equal(t, []meter.Export{
		{Name: "f", Type: meter.FuncType{[]meter.ValueType{I32}, []meter.ValueType{I64}}},
		{Name: "memory", Kind: meter.Memory},
	}, m.Exports)
	require.EqualValues(t, 2, m.MemoryPages)
	require.False(t, bytes.Contains(m.Code, []byte("name")), "custom sections are dropped")
}

// Small functions that the engine would work on for minutes, and use gigabytes for.
func TestWhatTakesTooLongToCompileIsRefused(t *testing.T) {
	loops := func(depth, locals int) []byte {
		b := Repeat(depth, 3, 0x40)
		for i := range locals {
			b = Code(b, Get(uint32(i+1)), I32Const(1), I32Add, Set(uint32(i+1)))
		}
		return Code(b, Repeat(depth, Get(0), BrIf(0), End))
	}
	for name, f := range map[string]Func{
		"loops in loops":     {Locals: 1000, Body: loops(100, 1000)},
		"branches":           {Locals: 1000, Body: Repeat(10_000, Get(0), If(Get(0), Set(7)))},
		"blocks in blocks":   {Body: Code(Repeat(19_000, 2, 0x40), Repeat(19_000, Get(0), BrIf(0), End))},
		"jumps":              {Body: Repeat(100_000, Get(0), BrIf(0))},
		"a table of targets": {Body: Code(Get(0), 0x0e, U32(400_000), make([]byte, 400_001))},
	} {
		f.Params = []byte{I32}
		_, err := meter.Rewrite(Module{Pages: 1, Funcs: []Func{f}}.Encode(), meter.DefaultLimits())
		require.ErrorContains(t, err, "too long to compile", name)
	}
	for name, f := range map[string]Func{
		"what a compiler makes": {Locals: 60, Body: Code(loops(6, 60), Repeat(1000, Get(0), If(Get(0), Set(7))))},
		"many locals":           {Locals: 1000, Body: loops(2, 1000)},
	} {
		f.Params = []byte{I32}
		_, err := meter.Rewrite(Module{Pages: 1, Funcs: []Func{f}}.Encode(), meter.DefaultLimits())
		require.NoError(t, err, name)
	}
}
