package upstream

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// past is a deadline that ends every wait at once.
var past = time.Unix(1, 0)

// conn is one connection. It belongs to the pool or to one call at a time.
type conn struct {
	raw   net.Conn        // the socket: deadlines, closing, questions to the kernel
	meter *meter          // on the socket
	rw    net.Conn        // what bytes go through: meter, or TLS over it
	ctl   syscall.RawConn // nil where the kernel cannot be asked
	probe probe
	// direct is the shorter way past rw; nil where there is none.
	direct *direct

	// buf[r:w] was read and not used yet; buf is nil while the connection is unused and, on the
	// direct way, while nothing is there. The next buffer has the given size.
	buf  []byte
	r, w int
	size int

	// What the socket's deadlines are now, so that most waits need no new one: zero is
	// none, past is "not known".
	readBy, writeBy time.Time

	expires   time.Time
	idleSince time.Time
	reused    bool
}

func newConn(m *meter, rw net.Conn, expires time.Time) *conn {
	cn := &conn{raw: m.Conn, rw: rw, meter: m, expires: expires, readBy: past, writeBy: past, size: smallBuffer}
	if sc, ok := cn.raw.(syscall.Conn); ok {
		cn.ctl, _ = sc.SyscallConn()
	}
	cn.probe.init()
	cn.direct = newDirect(cn)
	return cn
}

// meter is the socket, with a count of what left by it.
type meter struct {
	net.Conn
	// sent counts the bytes that the kernel took, over the connection's life.
	sent atomic.Uint64
	// dry makes reads fail as if nothing were there: TLS then hands out only what it has
	// read from the socket already. Only the connection's owner sets it, and only around a
	// read of its own.
	dry bool
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.sent.Add(uint64(n))
	return n, err
}

func (m *meter) Read(b []byte) (int, error) {
	if m.dry {
		return 0, errDry
	}
	return m.Conn.Read(b)
}

// dryError looks like a deadline to crypto/tls, which then keeps its state.
type dryError struct{}

var errDry error = dryError{}

func (dryError) Error() string   { return "nothing was read ahead" }
func (dryError) Timeout() bool   { return true }
func (dryError) Temporary() bool { return true }

// fill reads once, to the end of what is in the buffer. There is room.
func (cn *conn) fill() (int, error) {
	if cn.direct != nil {
		return cn.direct.fill()
	}
	n, err := cn.rw.Read(cn.buf[cn.w:])
	cn.w += n
	return n, err
}

// unused returns the bytes that were read and not used yet.
func (cn *conn) unused() []byte { return cn.buf[cn.r:cn.w] }

// room makes room for at least one more byte, up to limit bytes of unused ones. It reports
// false where that is not possible. It moves bytes: earlier slices of the buffer go bad.
func (cn *conn) room(limit int) bool {
	if cn.r == cn.w {
		switch {
		case cn.buf == nil:
		case cn.w == len(cn.buf): // one that a read filled is too small for this body
			cn.size = largeBuffer
		case cn.w < smallBuffer:
			cn.size = smallBuffer
		}
		cn.r, cn.w = 0, 0
		if len(cn.buf) < cn.size {
			cn.freeBuf()
		}
		if cn.buf == nil && cn.direct == nil {
			cn.buf = newBuffer(cn.size)
		}
		return true
	}
	if cn.w < len(cn.buf) {
		return true
	}
	n := copy(cn.buf, cn.buf[cn.r:cn.w])
	cn.r, cn.w = 0, n
	if n < len(cn.buf) {
		return true
	}
	if n >= limit {
		return false
	}
	bigger := newBuffer(max(2*n, largeBuffer))
	copy(bigger, cn.buf)
	freeBuffer(cn.buf)
	cn.buf = bigger
	return true
}

// freeBuf gives the buffer back.
func (cn *conn) freeBuf() {
	freeBuffer(cn.buf)
	cn.buf, cn.r, cn.w = nil, 0, 0
}

// quiet reports whether nothing waits on an unused connection: no byte, in the socket or
// decrypted already, no FIN, no reset.
func (cn *conn) quiet() bool {
	if _, ok := cn.rw.(*tls.Conn); ok && cn.readAhead() {
		return false
	}
	return cn.ctl == nil || cn.probe.quiet(cn.ctl)
}

// readAhead reports whether TLS holds bytes, or an end, that it has read already.
func (cn *conn) readAhead() bool {
	cn.meter.dry = true
	n, err := cn.rw.Read(cn.probe.scrap[:])
	cn.meter.dry = false
	return n > 0 || !isTimeout(err)
}

// close drops the connection without a TLS goodbye, which could block.
func (cn *conn) close() {
	_ = cn.raw.Close()
	cn.freeBuf()
	if cn.direct != nil {
		cn.direct.forget()
	}
}
