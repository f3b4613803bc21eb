//go:build !unix

package upstream

import "syscall"

// probe cannot ask the kernel on this system: unused connections are taken on trust.
type probe struct{ scrap [1]byte }

func (p *probe) init() {}

func (p *probe) quiet(syscall.RawConn) bool { return true }
