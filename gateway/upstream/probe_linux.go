package upstream

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// finSeen reports whether the next thing to read is the peer's FIN.
func (p *probe) finSeen(ctl syscall.RawConn) bool {
	seen := false
	err := ctl.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), p.scrap[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		seen = n == 0 && err == nil
	})
	return seen && err == nil
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
