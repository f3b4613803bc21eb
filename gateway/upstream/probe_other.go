//go:build !unix

package upstream

import "syscall"

// probe cannot ask the kernel on this system: unused connections are taken on trust, and
// nothing is ever proven unread.
type probe struct{ scrap [1]byte }

func (p *probe) init() {}

func (p *probe) quiet(syscall.RawConn) bool { return true }

func (p *probe) finSeen(syscall.RawConn) bool { return false }

func (p *probe) acked(syscall.RawConn) (uint64, bool) { return 0, false }
