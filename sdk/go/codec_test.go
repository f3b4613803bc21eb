package interlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// step is one field of a random message.
type step struct {
	kind int
	n    uint64
	b    []byte
}

func drawSteps(t *rapid.T) []step {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 4).Draw(t, "kind"), rapid.Uint64().Draw(t, "n"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")}
	})).Draw(t, "steps")
}

func write(steps []step) []byte {
	var w interlock.Writer
	for _, s := range steps {
		switch s.kind {
		case 0:
			w.U32(uint32(s.n))
		case 1:
			w.U64(s.n)
		case 2:
			w.Bool(s.n%2 == 1)
		case 3:
			w.Bytes(s.b)
		case 4:
			w.Str(string(s.b))
		}
	}
	return w
}

func TestReaderReadsWhatWriterWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t)
		b := write(steps)
		r := interlock.NewReader(b)
		for _, s := range steps {
			switch s.kind {
			case 0:
				require.Equal(t, uint32(s.n), r.U32())
			case 1:
				require.Equal(t, s.n, r.U64())
			case 2:
				require.Equal(t, s.n%2 == 1, r.Bool())
			case 3:
				require.Equal(t, string(s.b), string(r.Bytes()))
			case 4:
				require.Equal(t, string(s.b), r.Str())
			}
		}
		require.True(t, r.OK())
		require.Zero(t, r.Len())
		if len(b) == 0 {
			return
		}
		r = interlock.NewReader(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])
		walk(&r, steps)
		require.False(t, r.OK(), "cut short and not noticed")
	})
}

func walk(r *interlock.Reader, steps []step) {
	for _, s := range steps {
		switch s.kind {
		case 0:
			r.U32()
		case 1:
			r.U64()
		case 2:
			r.Bool()
		case 3:
			r.Bytes()
		case 4:
			_ = r.Str()
		}
	}
}

func TestLittleEndian(t *testing.T) {
	var w interlock.Writer
	w.U32(0x01020304)
	w.U64(0x0102030405060708)
	w.Str("ab")
	require.Equal(t, []byte{4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1, 2, 0, 0, 0, 'a', 'b'}, []byte(w))
}

func TestCountBelievesNoList(t *testing.T) {
	var w interlock.Writer
	w.U32(3)
	w.U64(0)
	r := interlock.NewReader(w)
	require.Equal(t, 0, r.Count(8))
	require.False(t, r.OK())
	require.Zero(t, r.U32())
	r = interlock.NewReader(w)
	require.Equal(t, 3, r.Count(2))
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 'a'}, []byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte{255, 255, 255, 255}, []byte{3, 4, 5})
	f.Fuzz(func(t *testing.T, b, kinds []byte) {
		r := interlock.NewReader(b)
		left := r.Len()
		for _, k := range kinds {
			switch k % 7 {
			case 0:
				r.U32()
			case 1:
				r.U64()
			case 2:
				r.Bool()
			case 3:
				r.Bytes()
			case 4:
				_ = r.Str()
			case 5:
				if n := r.Count(8); n*8 > r.Len() {
					t.Fatalf("a list of %d in %d bytes", n, r.Len())
				}
			case 6:
				if len(r.Rest()) != r.Len() {
					t.Fatal("Rest and Len differ")
				}
			}
			if r.Len() > left {
				t.Fatal("read backwards")
			}
			if left = r.Len(); !r.OK() && left != 0 {
				t.Fatal("went on after a failure")
			}
		}
	})
}
