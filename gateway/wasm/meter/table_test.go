package meter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// A function as compilers make it that know no structured code: three parts in a loop that begins
// with a jump by a table. Part 0 jumps to 2, part 1 to the end, part 2 back to 1. The digits of the
// result say which parts ran. Only what looks exactly so may be changed, and nothing may run
// differently; used is 1 for the function, and 1 for each time through the loop's header.
func TestJumpsThroughATable(t *testing.T) {
	const x, result = 0, 1
	ran := func(part int32) []byte {
		return Code(Get(result), I32Const(10), I32Mul, I32Const(part), I32Add, Set(result))
	}
	jump := func(entry int32, depth uint32) []byte { return Code(I32Const(entry), Set(x), Br(depth)) }
	table := Code(Get(x), 0x0e, 3, 0, 1, 2, 3)
	const nop = 0x01
	// parts are the loop and what it stands in: begin is what stands behind its header.
	parts := func(begin, table, zero, one, two []byte) []byte {
		return Code(Block(Loop(begin, Block(Block(Block(Block(table), ran(1), zero), ran(2), one), ran(3), two))), Get(result))
	}
	// From part 0 the loop is at depth 3, from part 1 at 2, from part 2 at 1.
	leave := Br(2)
	for name, at := range map[string]struct {
		body []byte
		want int32
		used int64
	}{
		"forward and back": {parts(nil, table, jump(2, 3), Br(3), jump(1, 1)), 132, 3},
		"forward twice":    {parts(nil, table, jump(1, 3), jump(2, 2), leave), 123, 2},
		"beyond the table": {parts(nil, table, jump(77, 3), leave, leave), 1, 2},
		"a negative entry": {parts(nil, table, jump(-1, 3), leave, leave), 1, 2},
		"within an if":     {parts(nil, table, Code(I32Const(1), If(jump(2, 4))), leave, leave), 13, 2},
		// What follows goes through the header.
		"something behind the header":     {parts(Code(nop), table, jump(2, 3), leave, leave), 13, 3},
		"something in front of the table": {parts(nil, Code(nop, table), jump(2, 3), leave, leave), 13, 3},
		"something between":               {parts(nil, table, Code(I32Const(2), Set(x), nop, Br(3)), leave, leave), 13, 3},
		"a tee":                           {parts(nil, table, Code(I32Const(2), Tee(x), Drop, Br(3)), leave, leave), 13, 3},
		"no constant":                     {parts(nil, table, Code(I32Const(2), nop, Set(x), Br(3)), leave, leave), 13, 3},
		"a result of the blocks":          {parts(nil, Code(0x02, I32, I32Const(7), End, Drop, table), jump(2, 3), leave, leave), 13, 3},
		"a part that has ended, and a block in its place": {
			parts(nil, table, nil, nil, Code(Get(result), I32Const(1230), 0x4a, BrIf(2), Block(jump(2, 2)))), 1233, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := Module{Pages: 1, Funcs: []Func{{Export: "f", Results: []byte{I32}, Locals: 2, Body: at.body}}}
			want, _, err := instantiate(t, m.Encode()).call(plenty, "f")
			require.NoError(t, err)
			require.EqualValues(t, at.want, want)
			got, used, err := metered(t, m).call(plenty, "f")
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, at.used, used)
		})
	}
}

// A jump to a table's entry that is set elsewhere, or by a table of another local, is left alone.
func TestOtherLocalsAreNoTables(t *testing.T) {
	body := Code(Block(Loop(Block(Block(Get(0), 0x0e, 1, 0, 1), I32Const(1), Set(0), I32Const(0), Set(1), Br(1)), Br(1))), Get(1), Get(0), I32Add)
	m := Module{Pages: 1, Funcs: []Func{{Export: "f", Results: []byte{I32}, Locals: 2, Body: body}}}
	got, used, err := metered(t, m).call(plenty, "f")
	require.NoError(t, err)
	require.EqualValues(t, 1, got)
	require.EqualValues(t, 3, used)
}
