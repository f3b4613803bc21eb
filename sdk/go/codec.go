package interlock

import "unsafe"

// Writer appends in the ABI's encoding: little-endian integers, bytes after their length. Its
// zero value is ready for use, and any slice may be continued: Writer(state[:0]).
type Writer []byte

// U32 appends a 32-bit integer.
func (w *Writer) U32(n uint32) {
	*w = append(*w, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// U64 appends a 64-bit integer.
func (w *Writer) U64(n uint64) {
	*w = append(*w, byte(n), byte(n>>8), byte(n>>16), byte(n>>24),
		byte(n>>32), byte(n>>40), byte(n>>48), byte(n>>56))
}

// Bool appends 1 or 0 in 32 bits.
func (w *Writer) Bool(b bool) {
	if b {
		w.U32(1)
	} else {
		w.U32(0)
	}
}

// Bytes appends a length and b.
func (w *Writer) Bytes(b []byte) {
	w.U32(uint32(len(b)))
	*w = append(*w, b...)
}

// Str appends a length and s.
func (w *Writer) Str(s string) {
	w.U32(uint32(len(s)))
	*w = append(*w, s...)
}

// close fills in the length that stands before at.
func (w *Writer) close(at int) { putU32((*w)[at-4:], uint32(len(*w)-at)) }

func putU32(b []byte, n uint32) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
}

// Reader reads what a Writer wrote. A read past the end returns a zero value, now and from then
// on, and OK turns false: check once, at the end. The zero value is an empty Reader.
type Reader struct {
	rest []byte
	bad  bool
}

// NewReader returns a Reader of b. What Bytes and Str return aliases b.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// OK says whether every read so far found what it wanted.
func (r *Reader) OK() bool { return !r.bad }

// Len is how many bytes are left.
func (r *Reader) Len() int { return len(r.rest) }

// Rest is what is left.
func (r *Reader) Rest() []byte { return r.rest }

// take returns the next n bytes, nil when there are fewer.
func (r *Reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// U32 reads a 32-bit integer.
func (r *Reader) U32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// U64 reads a 64-bit integer.
func (r *Reader) U64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// Bool reads what Writer.Bool wrote.
func (r *Reader) Bool() bool { return r.U32() != 0 }

// Bytes reads a length and as many bytes.
func (r *Reader) Bytes() []byte { return r.take(r.U32()) }

// Str reads a length and as many bytes. The string aliases the input: it must not be kept longer.
func (r *Reader) Str() string {
	b := r.Bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Count reads the length of a list whose elements take at least size bytes each. A list that
// could not be there makes the read fail, so that nobody makes room for it.
func (r *Reader) Count(size int) int {
	n := r.U32()
	if uint64(n)*uint64(size) > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}
