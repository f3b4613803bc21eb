package downstream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// errCut is what a write to a caller that has left gets.
	errCut   = errors.New("downstream: the caller has left")
	longPast = time.Unix(1, 0)
)

// piece is the most that one write hands to the kernel: progress is seen that often.
const piece = 64 << 10

// sockets accepts callers' connections as sockets.
type sockets struct {
	net.Listener
	stall time.Duration
	hurry atomic.Bool // no lingering any more
}

func (l *sockets) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &socket{Conn: c, shared: l}, nil
}

// socket is an accepted connection, below the watch and TLS. It owns the deadlines: a read
// deadline reaches the kernel only when a read is about to wait, and every write has one of
// its own, moved as the caller makes progress, so that a slow reader is cut and a long stream
// is not.
type socket struct {
	net.Conn
	shared *sockets

	mu       sync.Mutex
	readDue  time.Time // the deadline wanted
	readSet  time.Time // the deadline in force
	reading  bool
	writeDue time.Time // a deadline wanted besides the stall; zero = none
	writeSet time.Time // the deadline in force
	left     bool      // the caller has left: nothing is written any more
	linger   linger
}

// linger says how much of a refused body is read, and thrown away, before a connection is
// closed: closing with unread bytes would reset it, and the caller would never see why.
type linger struct {
	bytes int64
	time  time.Duration
}

// SyscallConn makes the socket known to the watch.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	c, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}

func (s *socket) Read(p []byte) (int, error) {
	s.mu.Lock()
	s.reading = true
	err := s.applyRead()
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	s.reading = false
	s.mu.Unlock()
	return n, err
}

func (s *socket) applyRead() error {
	if s.readDue.Equal(s.readSet) {
		return nil
	}
	s.readSet = s.readDue
	return s.Conn.SetReadDeadline(s.readDue)
}

// SetReadDeadline takes effect for a read that is waiting, too.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDue = t
	if s.reading {
		return s.applyRead()
	}
	return nil
}

// SetWriteDeadline takes effect with the next write.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeDue = t
	return nil
}

// SetDeadline sets both.
func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *socket) Write(p []byte) (int, error) {
	written := 0
	for {
		if err := s.armWrite(time.Now()); err != nil {
			return written, err
		}
		n, err := s.Conn.Write(p[:min(piece, len(p))])
		written += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return written, err
		}
	}
}

// armWrite sees to it that the write deadline in force is at least a stall away, and at most
// an eighth more: it is moved that seldom.
func (s *socket) armWrite(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return errCut
	}
	stall := s.shared.stall
	if !s.writeDue.IsZero() && s.writeDue.Before(now.Add(stall)) {
		s.writeSet = time.Time{}
		return s.Conn.SetWriteDeadline(s.writeDue)
	}
	if s.writeSet.Sub(now) >= stall {
		return nil
	}
	s.writeSet = now.Add(stall + stall/8)
	return s.Conn.SetWriteDeadline(s.writeSet)
}

// cut ends a write that waits, and every later one: the caller has left. Any goroutine.
func (s *socket) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	_ = s.Conn.SetWriteDeadline(longPast)
}

// reset has Close end the connection with a reset: its caller must not take what it got for
// the whole.
func (s *socket) reset() {
	if tcp, ok := s.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// lingerFor has Close read on for a moment.
func (s *socket) lingerFor(l linger) {
	s.mu.Lock()
	s.linger = l
	s.mu.Unlock()
}

// Close closes the connection, after reading on where lingerFor asked for it.
func (s *socket) Close() error {
	s.mu.Lock()
	l, left := s.linger, s.left
	s.linger = linger{}
	s.mu.Unlock()
	if l.bytes > 0 && !left && !s.shared.hurry.Load() {
		s.readOn(l)
	}
	return s.Conn.Close()
}

func (s *socket) readOn(l linger) {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if s.Conn.SetReadDeadline(time.Now().Add(l.time)) != nil {
		return
	}
	var scratch [4 << 10]byte
	for l.bytes > 0 {
		n, err := s.Conn.Read(scratch[:])
		if err != nil {
			return // the caller closed, or time is up
		}
		l.bytes -= int64(n)
	}
}

// socketOf finds the socket below a connection that the listener accepted.
func socketOf(c net.Conn) *socket {
	for {
		if s, ok := c.(*socket); ok {
			return s
		}
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = layer.NetConn()
	}
}

// timedOut says whether an error is a deadline's.
func timedOut(err error) bool {
	var e net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &e) && e.Timeout()
}

// hungUp says whether an error means that the caller has closed or reset the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}
