//go:build linux && !race

package upstream

import (
	"syscall"
	"unsafe"
)

// readSocket and writeSocket make one call to the kernel each, on a socket that does not block,
// and so without telling the scheduler.

func readSocket(fd uintptr, b []byte) (int, syscall.Errno) { return transfer(syscall.SYS_READ, fd, b) }

func writeSocket(fd uintptr, b []byte) (int, syscall.Errno) {
	return transfer(syscall.SYS_WRITE, fd, b)
}

// transfer reads into b or writes it, which is not empty, once.
func transfer(call, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))) // #nosec G103 -- within b
		switch errno {
		case 0:
			return int(n), 0 // #nosec G115 -- at most len(b)
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
