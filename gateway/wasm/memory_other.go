//go:build !unix

package wasm

import "github.com/tetratelabs/wazero/experimental"

// heaped is a guest's memory on the Go heap.
type heaped struct {
	b    []byte
	most uint64
}

func newMemory(least, most uint64) experimental.LinearMemory {
	return &heaped{make([]byte, 0, least), most}
}

func (m *heaped) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if grow := int(size) - len(m.b); grow > 0 {
		m.b = append(m.b, make([]byte, grow)...)
	}
	return m.b[:size]
}

func (m *heaped) Free() { m.b = nil }
