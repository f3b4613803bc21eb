package watch

import "net"

// Kind says what the peer did. Kinds only ever grow: a half-close may be followed by a reset.
type Kind uint8

// The kinds.
const (
	Alive     Kind = iota
	HalfClose      // a FIN came: close() and shutdown(SHUT_WR) look the same on the wire
	Reset          // a RST came, or both directions are shut
)

var kindNames = [...]string{"alive", "half_close", "reset"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Target is a running request. PeerGone is called from the watch's goroutine, with the
// connection's lock held: it must not block, and must not call Arm or Disarm. It is called at
// most once per kind.
type Target interface{ PeerGone(Kind) }

// Conn is a watched connection.
type Conn interface {
	// Arm names the running request. If the peer has gone already, it is told before Arm
	// returns. One target at a time; only the goroutine that serves the connection arms.
	Arm(Target)
	// Disarm ends the watch. No PeerGone runs or starts once it has returned, so the target
	// may be used for something else.
	Disarm()
	// Gone says what the peer has done so far, as far as the watch has seen.
	Gone() Kind
}

// From finds the watched connection in a connection that a Listener accepted: itself, or
// below layers that name the connection they lie on (NetConn, as *tls.Conn does).
func From(c net.Conn) (Conn, bool) {
	for c != nil {
		if w, ok := c.(Conn); ok {
			return w, true
		}
		layer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil, false
		}
		c = layer.NetConn()
	}
	return nil, false
}
