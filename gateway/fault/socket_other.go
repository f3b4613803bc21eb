//go:build !linux

package fault

import "net"

// hungUp cannot tell here: the peer's end behind unread bytes is seen when the
// provider writes.
func hungUp(net.Conn) bool { return false }

// unacknowledged cannot tell here: a reset may overtake the last bytes.
func unacknowledged(net.Conn) int { return 0 }
