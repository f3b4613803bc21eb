package upstream

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// newDirect returns the direct way to a connection; nil where there is none: TLS, or not TCP.
func newDirect(cn *conn) *direct {
	if _, ok := cn.raw.(*net.TCPConn); !ok || cn.ctl == nil || cn.rw != net.Conn(cn.meter) {
		return nil
	}
	d := &direct{raw: cn.ctl}
	d.step = func(fd uintptr) bool { return d.do(cn, fd) }
	return d
}

// do is one step of a wait. The socket does not block, so these calls go to the kernel without
// telling the scheduler.
func (d *direct) do(cn *conn, fd uintptr) bool {
	if len(d.out) > 0 {
		cn.probe.look(fd)
		quiet := cn.probe.nothing
		if !quiet && cn.reused {
			d.stale = true
			return true
		}
		n, errno := writeSocket(fd, d.out)
		cn.meter.sent.Add(uint64(n)) // #nosec G115 -- a count of bytes
		d.out = d.out[n:]
		if errno != 0 && errno != syscall.EAGAIN {
			d.sendErr = os.NewSyscallError("write", errno)
			return true
		}
		if len(d.out) > 0 {
			return true // the rest has to wait for room
		}
		d.sentAt = time.Now()
		if quiet {
			return false
		}
	}
	if cn.buf == nil {
		cn.buf = newBuffer(cn.size)
	}
	n, errno := readSocket(fd, cn.buf[cn.w:])
	switch {
	case errno == syscall.EAGAIN:
		if cn.r == cn.w {
			cn.freeBuf()
		}
		return false
	case errno != 0:
		d.err = os.NewSyscallError("read", errno)
	case n == 0:
		d.err = io.EOF
	}
	cn.w += n
	d.n = n
	return true
}
