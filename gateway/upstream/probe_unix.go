//go:build unix

package upstream

import "syscall"

// probe asks the kernel about a socket without reading from it.
type probe struct {
	scrap   [1]byte
	look    func(fd uintptr) // made once: a closure per question would be an allocation
	nothing bool             // its answer: no byte, no FIN, no reset
}

// quiet reports whether there is nothing to read: no byte, no FIN, no reset.
func (p *probe) quiet(ctl syscall.RawConn) bool {
	p.nothing = false
	return ctl.Control(p.look) == nil && p.nothing
}
