package upstream

import "sync"

// Buffers live only as long as a call uses them, so an unused connection costs no memory.
const (
	smallBuffer = 8 << 10
	largeBuffer = 64 << 10
)

type (
	small [smallBuffer]byte
	large [largeBuffer]byte
)

var (
	smalls = sync.Pool{New: func() any { return new(small) }}
	larges = sync.Pool{New: func() any { return new(large) }}
)

// newBuffer returns n bytes or more of arbitrary content.
func newBuffer(n int) []byte {
	switch {
	case n <= smallBuffer:
		return smalls.Get().(*small)[:]
	case n <= largeBuffer:
		return larges.Get().(*large)[:]
	default:
		return make([]byte, n)
	}
}

// freeBuffer takes back what newBuffer gave; nobody may use it any more. nil is fine.
func freeBuffer(b []byte) {
	switch cap(b) {
	case smallBuffer:
		smalls.Put((*small)(b[:smallBuffer]))
	case largeBuffer:
		larges.Put((*large)(b[:largeBuffer]))
	}
}
