//go:build linux && race

package upstream

import (
	"errors"
	"syscall"
)

// With the race detector the calls go through package syscall, which tells the detector that
// what is read from a socket was written to it before.

func readSocket(fd uintptr, b []byte) (int, syscall.Errno) { return retried(syscall.Read, fd, b) }

func writeSocket(fd uintptr, b []byte) (int, syscall.Errno) { return retried(syscall.Write, fd, b) }

func retried(call func(int, []byte) (int, error), fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), b) // #nosec G115 -- a descriptor
		var errno syscall.Errno
		switch {
		case err == nil:
			return n, 0
		case !errors.As(err, &errno):
			return 0, syscall.EIO
		case errno != syscall.EINTR:
			return 0, errno
		}
	}
}
