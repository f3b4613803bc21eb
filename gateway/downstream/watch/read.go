package watch

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// longPast is a deadline that has passed.
var longPast = time.Unix(1, 0)

// readConn watches by reading: while a request runs, a goroutine reads one byte, which is
// kept for the server's next read. It lies above TLS.
//
// Arm clears the connection's read deadline: the server sets one before it reads again.
type readConn struct {
	net.Conn

	mu       sync.Mutex
	idle     *sync.Cond // signalled when reading turns false
	target   Target
	gone     Kind
	reading  bool  // the goroutine is in Read
	stopping bool  // its deadline was put into the past by Disarm
	held     bool  // a byte came: the watch is blind until the server has taken it
	err      error // that ended the connection's input
	b        [1]byte
}

func wrapRead(accepted *conn) (net.Conn, error) {
	c := &readConn{Conn: accepted.secure(accepted)}
	c.idle = sync.NewCond(&c.mu)
	return c, nil
}

// NetConn returns the connection below.
func (c *readConn) NetConn() net.Conn { return c.Conn }

func (c *readConn) Arm(t Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target = t
	if c.gone != Alive {
		t.PeerGone(c.gone)
	}
	if c.held || c.err != nil || c.reading {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
	c.reading = true
	go c.listen()
}

func (c *readConn) listen() {
	n, err := c.Conn.Read(c.b[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n == 1:
		c.held = true
	case err == nil || c.stopping && timedOut(err):
	default:
		c.err = err
		c.tell(kindOf(err))
	}
	c.reading, c.stopping = false, false
	c.idle.Broadcast()
}

func (c *readConn) tell(k Kind) {
	if k <= c.gone {
		return
	}
	c.gone = k
	if c.target != nil {
		c.target.PeerGone(k)
	}
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// kindOf reads a FIN as EOF; inside TLS without a close_notify it is an unexpected one.
func kindOf(err error) Kind {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return HalfClose
	}
	return Reset
}

func (c *readConn) Disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.target = nil
	c.settle()
}

// settle ends the background read and waits for it. The lock is held.
func (c *readConn) settle() {
	if !c.reading {
		return
	}
	c.stopping = true
	_ = c.Conn.SetReadDeadline(longPast)
	for c.reading {
		c.idle.Wait()
	}
	_ = c.Conn.SetReadDeadline(time.Time{})
}

func (c *readConn) Gone() Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Read hands out the byte that was kept, then the error that the watch met, then what the
// connection has.
func (c *readConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if len(p) > 0 && c.held {
		p[0], c.held = c.b[0], false
		c.mu.Unlock()
		return 1, nil
	}
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

var _ Conn = (*readConn)(nil)
