package meter

import (
	"fmt"
	"unicode/utf8"
)

// Error says why a module was refused, and where.
type Error struct {
	Offset int // of the byte in the module
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %#x: %s", e.Offset, e.Reason) }

// reader goes through the bytes of a module. What does not fit ends it by a panic with an
// *Error, which Rewrite turns into a result: half of all lines would be checks otherwise.
type reader struct {
	b []byte // the module, cut off where the current section or body ends
	i int
}

func (r *reader) fail(format string, args ...any) {
	panic(&Error{r.i, fmt.Sprintf(format, args...)})
}

func (r *reader) done() bool { return r.i >= len(r.b) }

func (r *reader) byte() byte {
	if r.i >= len(r.b) {
		r.fail("it ends too early")
	}
	c := r.b[r.i]
	r.i++
	return c
}

// u32 reads an unsigned LEB128 as strictly as the engine does, so that both see the same
// boundaries.
func (r *reader) u32() uint32 {
	if r.i < len(r.b) && r.b[r.i] < 0x80 {
		r.i++
		return uint32(r.b[r.i-1])
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		c := r.byte()
		if shift == 28 && c > 0x0f {
			r.fail("a number exceeds 32 bits")
		}
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

// signed skips a signed LEB128 of at most the given bytes; its value is nobody's business here.
func (r *reader) signed(longest int) {
	for range longest {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("a number is too long")
}

// s33 reads a block's type: a value type, or the index of a function type.
func (r *reader) s33() int64 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail("a number is too long")
	return 0
}

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("it ends too early")
	}
	b := r.b[r.i : r.i+int(n)]
	r.i += int(n)
	return b
}

// part returns a reader of the next n bytes and steps over them.
func (r *reader) part(n uint32) *reader {
	at := r.i
	r.take(n)
	return &reader{b: r.b[:r.i], i: at}
}

// count reads how many items follow, each of at least one byte.
func (r *reader) count(what string, most uint32) uint32 {
	n := r.u32()
	if n > most {
		r.fail("%d %s, at most %d are allowed", n, what, most)
	}
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("%d %s do not fit in the section", n, what)
	}
	return n
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}

// zero reads a byte that must be zero: the index of the only memory.
func (r *reader) zero() {
	if r.byte() != 0 {
		r.fail("several memories are not supported")
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
