package meter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// Every vector instruction, in a body whose types do not matter: what counts is that the reader
// comes out behind its immediates. A trap instruction follows each, and a loop behind it; a
// reader that took a byte too many or too few would refuse the module or miss the loop.
func TestVectorImmediatesAreStepped(t *testing.T) {
	gaps := map[int]bool{}
	for _, g := range []int{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		gaps[g] = true
	}
	known := 0
	for op := range 256 {
		if gaps[op] {
			continue
		}
		known++
		var stack, immediate []byte
		v := Code(I64Const(0x0102030405060708), 0xfd, 18) // i64x2.splat
		// What each takes from the stack, by the specification.
		switch {
		case op <= 10, op == 92, op == 93: // loads
			stack, immediate = I32Const(0), Code(0, 0x80, 1)
		case op == 11: // store
			stack, immediate = Code(I32Const(0), v), Code(0, 0x10)
		case op == 12:
			immediate = Code(0x0b, 3, 0x40, 0x0b, 0x0c, 0, 0, 0, 0xfd, 0xfe, 0xff, 1, 2, 3, 4, 5)
		case op == 13:
			stack, immediate = Code(v, v), Code(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 3, 0x0b)
		case op >= 84 && op <= 91:
			stack, immediate = Code(I32Const(0), v), Code(0, 8, 1)
		case op >= 21 && op <= 34:
			stack, immediate = v, Code(1)
			switch op {
			case 23, 26, 28:
				stack = Code(v, I32Const(1))
			case 30:
				stack = Code(v, I64Const(1))
			case 32:
				stack = Code(v, 0x43, 0, 0, 0, 0)
			case 34:
				stack = Code(v, 0x44, 0, 0, 0, 0, 0, 0, 0, 0)
			}
		default:
			stack = nil // checked for its length only
		}
		number := Code(op)
		if op >= 0x80 {
			number = Code(op, 1)
		}
		t.Run(fmt.Sprintf("%#x", op), func(t *testing.T) {
			body := Code(stack, 0xfd, number, immediate, Unreachable, Loop(Br(0)))
			m := Module{Pages: 1, Funcs: []Func{{Export: "f", Body: body}}}
			w, err := meter.Rewrite(m.Encode(), meter.DefaultLimits())
			require.NoError(t, err)
			// The loop behind it was seen: a charge stands in it.
			require.Contains(t, string(w.Code), string(Code(0xfd, number, immediate, Unreachable, 3, 0x40, 0x23, 0, 0x42, 1)))
			if stack == nil && op != 12 {
				return
			}
			instantiate(t, m.Encode()) // the body is what the specification wants
			_, _, err = instantiate(t, w.Code).call(plenty, "f")
			require.ErrorContains(t, err, "unreachable")
		})
	}
	require.Equal(t, 236, known, "the specification has as many")
}

func TestVectorCodeIsTheSame(t *testing.T) {
	// Adds, shuffles, extracts and stores vectors in a loop.
	body := Code(
		Loop(
			Get(0), Get(0), 0xfd, 0, 4, 0, // v128.load
			0xfd, 12, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0,
			0xfd, 0xae, 1, // i32x4.add
			0xfd, 12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			0xfd, 13, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 16,
			0xfd, 11, 4, 0, // v128.store
			Get(0), I32Const(8), I32Add, Tee(0), I32Const(4096), I32LtU, BrIf(0),
		),
		I32Const(4000), 0xfd, 0, 4, 0, 0xfd, 0x1b, 2,
	)
	m := Module{Pages: 1, Funcs: []Func{{Export: "f", Params: []byte{I32}, Results: []byte{I32}, Body: body}}}
	w, err := meter.Rewrite(m.Encode(), meter.DefaultLimits())
	require.NoError(t, err)
	plain, changed := instantiate(t, m.Encode()), instantiate(t, w.Code)
	want, _, err := plain.call(plenty, "f", 0)
	require.NoError(t, err)
	got, used, err := changed.call(plenty, "f", 0)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NotZero(t, got)
	require.GreaterOrEqual(t, used, int64(512))
}
