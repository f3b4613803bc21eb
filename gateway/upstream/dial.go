package upstream

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// dialing is a connection being made, in a goroutine of its own, so that the call that
// wants it can be woken and aborted meanwhile.
type dialing struct {
	stop context.CancelFunc
	done chan struct{} // closed when cn and err are set
	gone chan struct{} // closed by Abort

	cn  *conn
	err *Error

	mu        sync.Mutex
	finished  bool
	abandoned bool
}

// dial starts making a connection for a call.
func (p *Pool) dial(k *Clocks) *dialing {
	ctx, stop := context.WithCancel(context.Background())
	d := &dialing{stop: stop, done: make(chan struct{}), gone: make(chan struct{})}
	connect, handshake := k.Connect, k.TLS
	go func() {
		defer stop()
		cn, err := p.establish(ctx, connect, handshake)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cn, d.err, d.finished = cn, err, true
		p.dialled(cn != nil)
		if d.abandoned && cn != nil {
			p.put(cn)
		}
		close(d.done)
	}()
	return d
}

// abandon gives the connection up: where it comes about all the same, the pool gets it.
func (d *dialing) abandon(p *Pool) {
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abandoned = true
	if d.finished && d.cn != nil {
		p.put(d.cn)
	}
}

// establish connects, by way of the proxy and with TLS where the target asks for them.
func (p *Pool) establish(ctx context.Context, connect, handshake time.Duration) (*conn, *Error) {
	cctx, cancel := withClock(ctx, connect)
	defer cancel()
	address := p.target.address()
	if p.proxy != nil {
		address = p.proxy.address
	}
	raw, err := p.dialTCP(cctx, "tcp", address)
	if err != nil {
		return nil, &Error{Transport: dialFact(cctx, err), Err: err}
	}
	m := &meter{Conn: raw}
	if p.proxy != nil {
		if err := p.proxy.tunnel(cctx, m, p.target.address()); err != nil {
			_ = raw.Close()
			return nil, &Error{Transport: dialFact(cctx, err), Err: err}
		}
	}
	expires := time.Now().Add(p.maxAge - rand.N(p.maxAge/5+1))
	if p.tls == nil {
		return newConn(m, m, expires), nil
	}
	hctx := cctx
	if handshake > 0 {
		var cancel context.CancelFunc
		hctx, cancel = withClock(ctx, handshake)
		defer cancel()
	}
	tc := tls.Client(m, p.tls)
	if err := tc.HandshakeContext(hctx); err != nil {
		_ = raw.Close()
		fact := failure.TLS
		if hctx.Err() != nil {
			fact = failure.ClockConnect
		}
		return nil, &Error{Transport: fact, Err: err}
	}
	return newConn(m, tc, expires), nil
}

func withClock(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// dialer tries IPv6 and IPv4 side by side (RFC 8305) and notices dead peers of streams that
// have no idle clock.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
	Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
}}
