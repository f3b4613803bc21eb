//go:build !linux

package watch

import "net"

const hasKernel = false

// kernel is the watch that this operating system lacks.
type kernel struct{}

func newKernel() (*kernel, error) { return nil, ErrNoKernel }

func (*kernel) wrap(*conn) (net.Conn, error) { return nil, ErrNoKernel }
func (*kernel) close() error                 { return nil }
