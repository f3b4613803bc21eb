//go:build unix

package wasm

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// mapped is a guest's memory outside the Go heap. It is reserved whole when the instance starts,
// backed by the system as the guest touches it, never moves, and goes back at once when the
// instance is closed: growing copies nothing, and the collector does not pace itself by what
// guests use.
type mapped []byte

func newMemory(_, most uint64) experimental.LinearMemory {
	b, err := unix.Mmap(-1, 0, int(most), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(fmt.Errorf("no memory for a guest: %w", err)) // start turns it into an error
	}
	m := mapped(b)
	return &m
}

func (m *mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(*m)) {
		return nil
	}
	return (*m)[:size]
}

func (m *mapped) Free() {
	if *m != nil {
		_ = unix.Munmap(*m) // it is a mapping of ours: there is nothing to do about an error
		*m = nil
	}
}
