//go:build unix

package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// probe asks the kernel about a socket without reading from it.
type probe struct {
	scrap [1]byte
	look  func(fd uintptr) // made once: a closure per question would be an allocation
	fds   [1]unix.PollFd
	n     int
	err   error
}

func (p *probe) init() {
	p.look = func(fd uintptr) {
		p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		p.n, p.err = unix.Poll(p.fds[:], 0)
	}
}

// quiet reports whether there is nothing to read: no byte, no FIN, no reset.
func (p *probe) quiet(ctl syscall.RawConn) bool {
	return ctl.Control(p.look) == nil && p.err == nil && p.n == 0
}
