package watch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const hasKernel = true

// kernel is one epoll set that wants nothing but the news that a peer has closed. Its
// descriptor is non-blocking and handed to Go's netpoller, where the one goroutine parks.
type kernel struct {
	fd   int
	file *os.File
	done chan struct{}

	mu    sync.Mutex
	conns map[uint64]*kernelConn // by a number that is never used again, unlike a descriptor
	last  uint64
}

func newKernel() (*kernel, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch: epoll_create1: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else os.NewFile would not poll it
		_ = unix.Close(fd)
		return nil, fmt.Errorf("watch: set epoll descriptor non-blocking: %w", err)
	}
	k := &kernel{
		fd: fd, file: os.NewFile(uintptr(fd), "caller-watch"),
		done: make(chan struct{}), conns: map[uint64]*kernelConn{},
	}
	poll, err := k.file.SyscallConn()
	if err != nil {
		_ = k.file.Close()
		return nil, fmt.Errorf("watch: epoll descriptor: %w", err)
	}
	go k.run(poll)
	return k, nil
}

// close ends the goroutine and waits for it.
func (k *kernel) close() error {
	err := k.file.Close()
	<-k.done
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (k *kernel) run(poll syscall.RawConn) {
	defer close(k.done)
	var events [128]unix.EpollEvent
	for {
		n := 0
		err := poll.Read(func(fd uintptr) bool {
			for {
				var err error
				n, err = unix.EpollWait(int(fd), events[:], 0)
				if !errors.Is(err, unix.EINTR) {
					return n > 0
				}
			}
		})
		if err != nil {
			return // closed
		}
		for i := range max(0, n) {
			k.tell(&events[i])
		}
	}
}

func (k *kernel) tell(e *unix.EpollEvent) {
	k.mu.Lock()
	c := k.conns[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
	k.mu.Unlock()
	if c == nil {
		return // closed meanwhile
	}
	kind := HalfClose
	if e.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		kind = Reset
	}
	c.tell(kind)
}

// wrap registers a connection: one epoll_ctl for its whole life. The kernel drops the entry
// with the last reference to the socket.
func (k *kernel) wrap(accepted *conn) (net.Conn, error) {
	socket, ok := accepted.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("watch: a %T is no socket", accepted.Conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &kernelConn{conn: accepted, kernel: k}
	k.mu.Lock()
	k.last++
	c.id = k.last
	k.conns[c.id] = c
	k.mu.Unlock()
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLET,
		Fd:     int32(uint32(c.id)), Pad: int32(uint32(c.id >> 32)),
	}
	var ctl error
	err = raw.Control(func(fd uintptr) { ctl = unix.EpollCtl(k.fd, unix.EPOLL_CTL_ADD, int(fd), &event) })
	if err = errors.Join(err, ctl); err != nil {
		k.forget(c.id)
		return nil, err
	}
	return accepted.secure(c), nil
}

func (k *kernel) forget(id uint64) {
	k.mu.Lock()
	delete(k.conns, id)
	k.mu.Unlock()
}

// kernelConn is what lies below TLS.
type kernelConn struct {
	*conn
	kernel *kernel
	id     uint64

	mu     sync.Mutex
	target Target
	gone   Kind
}

func (c *kernelConn) tell(k Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k <= c.gone {
		return
	}
	c.gone = k
	if c.target != nil {
		c.target.PeerGone(k) // with the lock held: this is what Disarm waits for
	}
}

func (c *kernelConn) Arm(t Target) {
	c.mu.Lock()
	c.target = t
	if c.gone != Alive {
		t.PeerGone(c.gone)
	}
	c.mu.Unlock()
}

func (c *kernelConn) Disarm() {
	c.mu.Lock()
	c.target = nil
	c.mu.Unlock()
}

func (c *kernelConn) Gone() Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// Close unregisters and closes the connection.
func (c *kernelConn) Close() error {
	c.kernel.forget(c.id)
	return c.conn.Close()
}

var _ Conn = (*kernelConn)(nil)
