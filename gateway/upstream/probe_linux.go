package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// probe asks the kernel about a socket without reading from it.
type probe struct {
	scrap [1]byte
	look  func(fd uintptr) // made once: a closure per question would be an allocation
	n     int
	err   error
}

func (p *probe) init() {
	p.look = func(fd uintptr) {
		p.n, _, p.err = unix.Recvfrom(int(fd), p.scrap[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	}
}

// quiet reports whether there is nothing to read: no byte, no FIN, no reset.
func (p *probe) quiet(ctl syscall.RawConn) bool {
	return ctl.Control(p.look) == nil && p.err == unix.EAGAIN
}

// finSeen reports whether the next thing to read is the peer's FIN.
func (p *probe) finSeen(ctl syscall.RawConn) bool {
	return ctl.Control(p.look) == nil && p.err == nil && p.n == 0
}

// acked returns how many bytes the peer's kernel has acknowledged over the connection's
// life, the SYN counted as one (tcpi_bytes_acked, Linux 4.1).
func (p *probe) acked(ctl syscall.RawConn) (n uint64, ok bool) {
	err := ctl.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n, ok = info.Bytes_acked, true
		}
	})
	return n, ok && err == nil
}
