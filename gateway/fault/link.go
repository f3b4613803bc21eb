package fault

import (
	"net"
	"sync"
	"time"
)

const (
	readAhead    = 64 << 10              // bytes read before anyone asks for them
	hangupPeriod = 10 * time.Millisecond // how often a full read-ahead looks for the peer's end
	lingerPeriod = 2 * time.Second       // how long a FIN waits for the peer's own
)

// link is one accepted TCP connection. A goroutine reads ahead of its owner,
// so that the peer's FIN or RST is seen at once, also while an answer waits
// and also below TLS. It is the net.Conn that TLS runs over.
type link struct {
	net.Conn // the TCP connection; its Read is not used

	gone   chan struct{} // closed when the peer has closed or reset
	onGone func(reset bool)

	mu      sync.Mutex
	more    *sync.Cond // the buffer or the end has changed
	buffer  []byte
	ended   error // what ended reading, nil while open
	closed  bool  // by us
	discard bool  // what still comes is not kept
	expiry  *time.Timer
	expired bool
	pumped  chan struct{} // closed when the pump has ended
	taken   chan struct{} // holds a token when something was read or closed
}

func newLink(c net.Conn, onGone func(reset bool)) *link {
	l := &link{Conn: c, gone: make(chan struct{}), onGone: onGone, pumped: make(chan struct{}), taken: make(chan struct{}, 1)}
	l.more = sync.NewCond(&l.mu)
	return l
}

// pump reads until the connection ends.
func (l *link) pump() {
	defer close(l.pumped)
	chunk := make([]byte, 32<<10)
	for l.room() {
		n, err := l.Conn.Read(chunk)
		l.mu.Lock()
		if !l.discard {
			l.buffer = append(l.buffer, chunk[:n]...)
		}
		l.mu.Unlock()
		l.more.Broadcast()
		if err != nil {
			l.end(err)
			return
		}
	}
}

// room waits until the read-ahead is under its limit. It is false when the
// connection ended meanwhile.
func (l *link) room() bool {
	look := time.NewTimer(hangupPeriod)
	defer look.Stop()
	for {
		l.mu.Lock()
		full, closed := len(l.buffer) >= readAhead, l.closed
		l.mu.Unlock()
		switch {
		case !full:
			return true
		case closed:
			l.end(net.ErrClosed)
			return false
		case hungUp(l.Conn):
			// What the peer sent before stays unread: nobody is left to
			// whom an answer to it would matter.
			l.end(errHungUp)
			return false
		}
		look.Reset(hangupPeriod)
		select {
		case <-l.taken:
		case <-look.C:
		}
	}
}

// wake tells readers and the pump that something has changed.
func (l *link) wake() {
	l.more.Broadcast()
	select {
	case l.taken <- struct{}{}:
	default:
	}
}

func (l *link) end(err error) {
	l.mu.Lock()
	l.ended = err
	closed := l.closed
	l.mu.Unlock()
	l.more.Broadcast()
	if closed {
		return
	}
	if l.onGone != nil {
		l.onGone(isReset(err))
	}
	close(l.gone)
	_ = l.Conn.SetWriteDeadline(time.Unix(1, 0)) // a write the peer no longer reads ends
}

// Read implements net.Conn over the read-ahead.
func (l *link) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.buffer) == 0 {
		switch {
		case l.closed:
			return 0, net.ErrClosed
		case l.ended != nil:
			return 0, l.ended
		case l.expired:
			return 0, errReadExpired
		}
		l.more.Wait()
	}
	n := copy(p, l.buffer)
	l.buffer = l.buffer[n:]
	if len(l.buffer) == 0 {
		l.buffer = nil
	}
	l.wake()
	return n, nil
}

// expireReads makes a Read that finds nothing fail after d; 0 takes that back.
func (l *link) expireReads(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.expiry, l.expired = nil, false
	if d <= 0 {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		if l.expiry == timer {
			l.expired = true
		}
		l.mu.Unlock()
		l.more.Broadcast()
	})
	l.expiry = timer
}

// SetDeadline and SetReadDeadline are accepted and ignored for reading, which
// ends with the connection.
func (l *link) SetDeadline(t time.Time) error   { return l.Conn.SetWriteDeadline(t) }
func (l *link) SetReadDeadline(time.Time) error { return nil }

// Close implements net.Conn: both directions at once.
func (l *link) Close() error {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.mu.Unlock()
	l.wake()
	if was {
		return nil
	}
	return l.Conn.Close()
}

// finish sends a FIN. Where more is to come from the peer a plain close would
// reset, so it takes that in and waits a little for the peer to end too.
func (l *link) finish(more bool, closing <-chan struct{}) {
	if tcp, ok := l.Conn.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		l.mu.Lock()
		l.buffer, l.discard = nil, true
		l.mu.Unlock()
		l.wake()
		if more {
			timer := time.NewTimer(lingerPeriod)
			defer timer.Stop()
			select {
			case <-l.gone:
			case <-closing:
			case <-timer.C:
			}
		}
	}
	_ = l.Close()
}

// reset sends an RST. What was written before is first given time to arrive:
// an RST throws away what still waits to be sent.
func (l *link) reset(closing <-chan struct{}) {
	deadline := time.NewTimer(lingerPeriod)
	defer deadline.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for waiting := true; waiting && unacknowledged(l.Conn) > 0; {
		select {
		case <-look.C:
		case <-l.gone:
			waiting = false
		case <-closing:
			waiting = false
		case <-deadline.C:
			waiting = false
		}
	}
	if tcp, ok := l.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.Close()
}

// isGone reports whether the peer has closed or reset.
func (l *link) isGone() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}
