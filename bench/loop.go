package main

import (
	"container/heap"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one thread that waits for many sockets and for points in time. The load and the
// upstream run on it: it costs a system call a wait and nothing of Go's scheduler, and it
// wakes within microseconds, where a timer of Go's may be a millisecond late. Linux only.
type loop struct {
	ep       int
	handlers []handler // by descriptor
	due      timers
	events   [512]unix.EpollEvent
	in       [256 << 10]byte // what was read last; for one handler at a time
	stop     atomic.Bool
}

// handler is what happens at a descriptor or at a point in time.
type handler interface {
	ready(events uint32)
	tick(now time.Duration)
}

// newLoop makes a loop for the calling goroutine, which stays on its thread from then on.
func newLoop() (*loop, error) {
	runtime.LockOSThread()
	// Waits end when they are due: the kernel's default is to be up to 50 µs late.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("timer slack: %w", err)
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &loop{ep: ep}, nil
}

// add watches a descriptor, edge-triggered: whoever is called reads and writes until there is
// nothing more to be had.
func (l *loop) add(fd int, h handler) error {
	for fd >= len(l.handlers) {
		l.handlers = append(l.handlers, make([]handler, max(64, len(l.handlers)))...)
	}
	l.handlers[fd] = h
	return unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(fd),
	})
}

// drop closes a descriptor.
func (l *loop) drop(fd int) {
	l.handlers[fd] = nil
	_ = unix.Close(fd)
}

// at calls the handler's tick at a time of [now].
func (l *loop) at(when time.Duration, h handler) { heap.Push(&l.due, timer{when, h}) }

// run serves until stop is set.
func (l *loop) run() error {
	for !l.stop.Load() {
		wait := time.Hour
		if len(l.due) > 0 {
			wait = max(0, l.due[0].at-now())
		}
		n, err := l.wait(wait)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range l.events[:max(n, 0)] {
			if h := l.handlers[e.Fd]; h != nil {
				h.ready(e.Events)
			}
		}
		for t := now(); len(l.due) > 0 && l.due[0].at <= t; {
			heap.Pop(&l.due).(timer).do.tick(t)
		}
	}
	return unix.Close(l.ep)
}

func (l *loop) wait(d time.Duration) (int, error) {
	ts := unix.NsecToTimespec(int64(d))
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.ep), uintptr(unsafe.Pointer(&l.events[0])),
		uintptr(len(l.events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == unix.ENOSYS { // before Linux 5.11: milliseconds
		return unix.EpollWait(l.ep, l.events[:], int((d+time.Millisecond-1)/time.Millisecond))
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

var epoch = time.Now()

// now is the monotonic time since the process began.
func now() time.Duration { return time.Since(epoch) }

// timer is a tick that is due.
type timer struct {
	at time.Duration
	do handler
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

// output is what is still to be written to a socket, in order. The bytes are not copied and
// must not change.
type output struct{ left [][]byte }

// send writes the bytes to the socket, or as much as it takes now; flush, when the socket is
// ready again, writes the rest.
func (o *output) send(fd int, b []byte) error {
	o.left = append(o.left, b)
	if len(o.left) > 1 {
		return nil
	}
	return o.flush(fd)
}

func (o *output) flush(fd int) error {
	for len(o.left) > 0 {
		n, err := unix.Write(fd, o.left[0])
		if err == unix.EAGAIN {
			return nil
		}
		if err != nil {
			return err
		}
		if o.left[0] = o.left[0][n:]; len(o.left[0]) == 0 {
			o.left = append(o.left[:0], o.left[1:]...)
		}
	}
	return nil
}

// dial connects to an IPv4 address. It waits for the connection, which on one machine is
// there at once.
func dial(addr *net.TCPAddr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	if err = unix.Connect(fd, to); err == nil {
		err = open(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("connect to %v: %w", addr, err)
	}
	return fd, nil
}

// open prepares a connected socket for the loop.
func open(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	return unix.SetNonblock(fd, true)
}
