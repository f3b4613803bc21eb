//go:build unix && !linux

package upstream

import "golang.org/x/sys/unix"

// init makes the question once.
func (p *probe) init() {
	fds := new([1]unix.PollFd)
	p.look = func(fd uintptr) {
		fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} // #nosec G115 -- a descriptor
		n, err := unix.Poll(fds[:], 0)
		p.nothing = n == 0 && err == nil
	}
}
