package downstream

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// firstInherited is the first file descriptor that a service manager passes on
// (sd_listen_fds(3)).
const firstInherited = 3

// Inherited returns the listening sockets that this process was started with (LISTEN_FDS,
// LISTEN_PID), none if there are none, so that a new process takes a listener over without
// losing a connection. The variables are removed: a child does not inherit them.
func Inherited() ([]net.Listener, error) {
	pid, fds := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if fds == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	_ = os.Unsetenv("LISTEN_PID")
	_ = os.Unsetenv("LISTEN_FDS")
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > 64 {
		return nil, fmt.Errorf("LISTEN_FDS is %q: a number from 0 to 64 is allowed", fds)
	}
	var list []net.Listener
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(file) // a copy of the descriptor
		_ = file.Close()
		if err != nil {
			for _, l := range list {
				_ = l.Close()
			}
			return nil, fmt.Errorf("inherited file descriptor %d is no listener: %w", fd, err)
		}
		list = append(list, l)
	}
	return list, nil
}
