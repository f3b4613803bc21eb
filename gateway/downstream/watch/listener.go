package watch

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Method is a way to watch.
type Method uint8

// The methods. Auto is Kernel where there is one, else Read.
const (
	Auto Method = iota
	Kernel
	Read
)

// ErrNoKernel is returned for the method Kernel where the operating system has none.
var ErrNoKernel = errors.New("watch: this operating system has no kernel watch; use Auto or Read")

// Options say how a Listener watches and what it accepts. The zero value watches without TLS
// and without limits.
type Options struct {
	Method        Method
	TLS           *tls.Config // nil = no TLS
	MaxConns      int         // open connections; 0 = no limit
	MaxConnsPerIP int         // open connections of one address (of IPv6: one /64); 0 = no limit
}

// Listener accepts connections that From finds again. A connection beyond a limit is closed
// at once, and being short of file descriptors is waited out: neither ends Accept.
//
// A limit has to be kept here: a server that wraps connections in a private type to count
// them would hide the watched one.
type Listener struct {
	inner   net.Listener
	options Options
	wrap    func(*conn) (net.Conn, error)
	stop    func() error

	closing chan struct{}
	once    sync.Once
	refused atomic.Uint64

	mu   sync.Mutex
	open map[*conn]struct{}
	byIP map[netip.Addr]int
}

// Listen wraps a listener. For the method Kernel its connections must be sockets
// (syscall.Conn). Listen starts one goroutine for the method Kernel, which CloseAll ends.
func Listen(inner net.Listener, o Options) (*Listener, error) {
	l := &Listener{
		inner: inner, options: o, closing: make(chan struct{}),
		open: map[*conn]struct{}{}, byIP: map[netip.Addr]int{},
	}
	method := o.Method
	if method == Auto {
		method = Read
		if hasKernel {
			method = Kernel
		}
	}
	switch method {
	case Kernel:
		k, err := newKernel()
		if err != nil {
			return nil, err
		}
		l.wrap, l.stop = k.wrap, k.close
	case Read:
		l.wrap, l.stop = wrapRead, func() error { return nil }
	default:
		return nil, fmt.Errorf("watch: there is no method %d", method)
	}
	return l, nil
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Refused counts the connections that were closed because of a limit.
func (l *Listener) Refused() uint64 { return l.refused.Load() }

// Open counts the connections that are open.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Close stops accepting. Connections accepted before stay open and watched.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		close(l.closing)
		err = l.inner.Close()
	})
	return err
}

// CloseAll stops accepting, closes every connection that is still open and ends the watch.
// No PeerGone runs after it has returned.
func (l *Listener) CloseAll() error {
	_ = l.Close()
	l.mu.Lock()
	left := make([]*conn, 0, len(l.open))
	for c := range l.open {
		left = append(left, c)
	}
	l.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	return l.stop()
}

// Accept waits for the next connection within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.accept()
		if err != nil {
			return nil, err
		}
		c := l.admit(accepted)
		if c == nil {
			l.refused.Add(1)
			_ = accepted.Close()
			continue
		}
		watched, err := l.wrap(c)
		if err != nil {
			l.refused.Add(1)
			_ = c.Close()
			continue
		}
		return watched, nil
	}
}

// accept waits out what passes by itself: too many open files, a caller that had gone
// before it was accepted.
func (l *Listener) accept() (net.Conn, error) {
	const longest = time.Second
	pause := 5 * time.Millisecond
	for {
		c, err := l.inner.Accept()
		if err == nil {
			return c, nil
		}
		if !passes(err) {
			return nil, err
		}
		select {
		case <-l.closing:
			return nil, err
		case <-time.After(pause):
			pause = min(2*pause, longest)
		}
	}
}

func passes(err error) bool {
	for _, e := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit counts a connection, or returns nil if a limit is reached.
func (l *Listener) admit(accepted net.Conn) *conn {
	ip := addressOf(accepted)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.MaxConns > 0 && len(l.open) >= l.options.MaxConns {
		return nil
	}
	if l.options.MaxConnsPerIP > 0 && ip.IsValid() && l.byIP[ip] >= l.options.MaxConnsPerIP {
		return nil
	}
	c := &conn{Conn: accepted, listener: l, ip: ip}
	l.open[c] = struct{}{}
	if ip.IsValid() {
		l.byIP[ip]++
	}
	return c
}

// addressOf returns whom a connection is counted for; a caller with IPv6 owns a whole /64.
func addressOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}

// conn is an accepted connection that is counted until it is closed.
type conn struct {
	net.Conn
	listener *Listener
	ip       netip.Addr
}

// NetConn returns the connection that was accepted.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close closes the connection; only the first call counts it out.
func (c *conn) Close() error {
	c.listener.forget(c)
	return c.Conn.Close()
}

func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	if !c.ip.IsValid() {
		return
	}
	if l.byIP[c.ip]--; l.byIP[c.ip] == 0 {
		delete(l.byIP, c.ip)
	}
}

// secure puts TLS on top of a connection where the listener has it.
func (c *conn) secure(below net.Conn) net.Conn {
	if c.listener.options.TLS == nil {
		return below
	}
	return tls.Server(below, c.listener.options.TLS)
}
