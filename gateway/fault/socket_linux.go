package fault

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp reports whether the peer has closed or reset a connection whose
// bytes are not read.
func hungUp(c net.Conn) bool {
	hung := false
	err := control(c, func(fd int) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(poll, 0)
		hung = err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return hung || err != nil
}

// unacknowledged is how many bytes were written that the peer's system has not
// acknowledged.
func unacknowledged(c net.Conn) int {
	n := 0
	_ = control(c, func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQ) })
	return n
}

func control(c net.Conn, do func(fd int)) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { do(int(fd)) })
}
