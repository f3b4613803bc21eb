package meter_test

import (
	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// program makes valid modules out of arbitrary bytes: each byte is a choice. What it makes ends
// by itself: loops count down and functions call only those after them.
type program struct {
	choices []byte
	funcs   int
	at      int // the function that is being made
	left    int // pieces that it may still make
}

const (
	programFuncs = 4
	// Of each function: two parameters, four variables, and loop counters.
	programVars   = 6
	programLocals = 16
)

func makeProgram(choices []byte) Module {
	p := &program{choices: choices, funcs: programFuncs}
	m := Module{Pages: 2, Globals: 2, Passive: []byte("0123456789abcdef0123456789abcdef"), Table: 8, Data: []byte("seed"), DataAt: 64}
	for p.at = range p.funcs {
		p.left = 60
		f := Func{Params: []byte{I32, I32}, Results: []byte{I32}, Locals: programLocals - 2}
		f.Body = Code(p.statements(3, programVars), p.expression(3))
		if p.at == 0 {
			f.Export = "f"
		}
		m.Funcs = append(m.Funcs, f)
	}
	return m
}

func (p *program) choose(n int) int {
	p.left--
	if len(p.choices) == 0 {
		return 0
	}
	c := int(p.choices[0])
	p.choices = p.choices[1:]
	return c % n
}

func (p *program) variable() uint32 { return uint32(p.choose(programVars)) }

// address leaves an address in the lower part of the memory.
func (p *program) address(deep int) []byte {
	return Code(p.expression(deep-1), I32Const(0xffc), I32And)
}

func (p *program) expression(deep int) []byte {
	if deep <= 0 || p.left <= 0 {
		if p.choose(2) == 0 {
			return I32Const(int32(p.choose(256)))
		}
		return Get(p.variable())
	}
	switch p.choose(10) {
	case 0:
		return Code(p.expression(deep-1), p.expression(deep-1), I32Add)
	case 1:
		return Code(p.expression(deep-1), p.expression(deep-1), I32Mul)
	case 2:
		return Code(p.expression(deep-1), p.expression(deep-1), I32Xor)
	case 3:
		return Code(p.address(deep), Load32(uint32(p.choose(200))))
	case 4:
		return Code(p.expression(deep-1), 0x04, I32, p.expression(deep-1), Else, p.expression(deep-1), End)
	case 5:
		if p.at+1 < p.funcs {
			callee := uint32(p.at + 1 + p.choose(p.funcs-p.at-1))
			if p.choose(2) == 0 {
				return Code(p.expression(deep-1), p.expression(deep-1), Call(callee))
			}
			// Through the table: all functions have the same type, type 0 is one like it.
			return Code(p.expression(deep-1), p.expression(deep-1), I32Const(int32(callee)), 0x11, 0, 0)
		}
		return Pages
	case 6:
		return Code(p.expression(deep-1), p.expression(deep-1), p.expression(deep-1), 0x1b)
	case 7:
		return Code(0x23, p.choose(2))
	case 8: // a division, which can trap
		return Code(p.expression(deep-1), p.expression(deep-1), 0x6e)
	default:
		return Code(p.expression(deep-1), Tee(p.variable()))
	}
}

// statements leaves nothing. counter is the first local that no loop around uses.
func (p *program) statements(deep int, counter uint32) []byte {
	var b []byte
	for range 1 + p.choose(4) {
		b = append(b, p.statement(deep, counter)...)
	}
	return b
}

func (p *program) statement(deep int, counter uint32) []byte {
	if deep <= 0 || p.left <= 0 {
		return Code(p.expression(1), Set(p.variable()))
	}
	switch p.choose(13) {
	case 12:
		return p.dispatch(deep, counter)
	case 0:
		return Code(p.address(deep), p.expression(deep-1), Store32(uint32(p.choose(100))))
	case 1:
		return Code(p.expression(deep-1), If(p.statements(deep-1, counter)))
	case 2:
		return Code(p.expression(deep-1), 0x04, 0x40, p.statements(deep-1, counter), Else, p.statements(deep-1, counter), End)
	case 3:
		return Block(p.statements(deep-1, counter), p.expression(deep-1), BrIf(0), p.statements(deep-1, counter))
	case 4:
		return Block(p.statements(deep-1, counter), Br(0), p.statements(deep-1, counter))
	case 5:
		return Block(Block(Block(p.expression(deep-1), 0x0e, 2, 0, 1, 2), p.statements(deep-1, counter)), p.statements(deep-1, counter))
	case 6:
		return Code(p.address(deep), I32Const(int32(p.choose(256))), I32Const(int32(p.choose(250))), Fill)
	case 7:
		return Code(p.address(deep), p.address(deep), I32Const(int32(p.choose(250))), Copy)
	case 8:
		return Code(p.address(deep), I32Const(int32(p.choose(40))), I32Const(4), 0xfc, 8, 1, 0)
	case 9:
		return Code(p.expression(deep-1), 0x24, p.choose(2))
	case 10:
		return Code(I32Const(int32(p.choose(3))), Grow, Drop)
	default:
		if counter >= programLocals {
			return []byte{0x01}
		}
		return Code(I32Const(int32(1+p.choose(6))), Set(counter), Loop(
			p.statements(deep-1, counter+1),
			Get(counter), I32Const(1), I32Sub, Tee(counter), BrIf(0)))
	}
}

// dispatch is a loop that begins with a jump by a table, with jumps through it in all directions.
func (p *program) dispatch(deep int, counter uint32) []byte {
	if counter+1 >= programLocals {
		return []byte{0x01}
	}
	const n = 4
	turns, next := counter, counter+1
	var to [n + 1]int // the part to which each entry leads, and all above
	table := []byte{0x0e, n}
	for i := range to {
		to[i] = p.choose(n)
		table = append(table, byte(to[i]))
	}
	body := Code(Get(next), table)
	for at := range n {
		body = Code(Block(body), p.statements(deep-2, counter+2))
		for range p.choose(3) {
			entry := p.choose(n + 3)
			jump := Code(I32Const(int32(entry)), Set(next))
			if p.choose(8) == 0 { // what stands between keeps the jump as it is
				jump = append(jump, 0x01)
			}
			jump = append(jump, Br(uint32(n-at))...)
			when := p.expression(deep - 2)
			if to[min(entry, n)] <= at { // backwards: so often and no more
				when = Code(Get(turns), I32Const(1), I32Sub, Tee(turns), I32Const(0), 0x4a)
			}
			body = Code(body, when, If(jump))
		}
	}
	return Code(I32Const(int32(1+p.choose(6))), Set(turns), I32Const(int32(p.choose(n+2))), Set(next), Loop(body))
}
