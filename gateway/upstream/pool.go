package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options configure a pool.
type Options struct {
	Target Target
	// IdleTTL is how long an unused connection is kept; keep it below the upstream's own
	// limit. Default 30 s.
	IdleTTL time.Duration
	// MaxIdle is how many unused connections are kept. Default 64.
	MaxIdle int
	// MaxAge is how long a connection is used at most, so that a changed DNS answer is
	// followed; each connection's is up to a fifth shorter by chance. Default 5 min.
	MaxAge time.Duration
	// MaxHeaderBytes bounds a response head, all 1xx heads before it included. Default 64 KiB.
	MaxHeaderBytes int
}

// Pool holds the connections of one channel. It sets no limit on those in use: the gate
// before it does. Its methods are safe for concurrent use.
type Pool struct {
	target  Target
	tls     *tls.Config
	proxy   *proxy
	idleTTL time.Duration
	maxIdle int
	maxAge  time.Duration
	maxHead int
	dialTCP func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	idle    []*conn // the last one was used last
	sweeper *time.Timer
	retired bool
	closed  bool
	stats   Stats // but Idle, which is len(idle)
}

// NewPool checks the options, reads the files they name and returns an empty pool. Nothing
// is dialled.
func NewPool(o Options) (*Pool, error) {
	if o.IdleTTL < 0 || o.MaxIdle < 0 || o.MaxAge < 0 || o.MaxHeaderBytes < 0 {
		return nil, fmt.Errorf("upstream: IdleTTL, MaxIdle, MaxAge and MaxHeaderBytes must not be negative")
	}
	p := &Pool{
		idleTTL: orDuration(o.IdleTTL, 30*time.Second),
		maxAge:  orDuration(o.MaxAge, 5*time.Minute),
		maxIdle: o.MaxIdle,
		maxHead: o.MaxHeaderBytes,
		dialTCP: dialer.DialContext,
	}
	if p.maxIdle == 0 {
		p.maxIdle = 64
	}
	if p.maxHead == 0 {
		p.maxHead = 64 << 10
	}
	var err error
	if p.target, err = o.Target.complete(); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if p.tls, err = p.target.tlsConfig(); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if p.proxy, err = parseProxy(o.Target.Proxy); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return p, nil
}

func orDuration(d, or time.Duration) time.Duration {
	if d == 0 {
		return or
	}
	return d
}

// Addressed returns what a signature needs of the target: the Host header, and the path as the
// request line has it, base path and query included.
func (p *Pool) Addressed(path string) (host, line string) {
	t := &p.target
	line = t.BasePath + path
	if t.Query != "" {
		line += string(joint(path)) + t.Query
	}
	return t.authority, line
}

// Retire closes the unused connections, and every other one when it comes back. Calls can
// still be started: requests of an old generation end on it.
func (p *Pool) Retire() { p.end(false) }

// Close retires the pool and refuses new calls ([ErrClosed]). It waits for nothing: calls
// in flight end by their own.
func (p *Pool) Close() { p.end(true) }

func (p *Pool) end(closed bool) {
	p.mu.Lock()
	p.retired = true
	p.closed = p.closed || closed
	idle := p.idle
	p.idle = nil
	if p.sweeper != nil {
		p.sweeper.Stop()
		p.sweeper = nil
	}
	p.mu.Unlock()
	for _, cn := range idle {
		cn.close()
	}
}

// Stats returns the pool's numbers.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Idle = len(p.idle)
	return s
}

// Stats are the numbers of a pool: what there is now, and counts since it was made.
type Stats struct {
	Idle, InUse, Dialing int

	Dials       uint64 // connections asked for
	DialsFailed uint64 // of those, without a connection in the end
	Reuses      uint64 // calls that took an unused connection
	Stale       uint64 // unused connections found closed, or with stray bytes, before use
	Expired     uint64 // unused connections closed for IdleTTL or MaxAge
	Redials     uint64 // connections replaced inside a call, proven closed before anything was read
	Dropped     uint64 // connections not kept after a call
	Aborts      uint64 // calls ended by Abort
}

// take returns an unused connection on which nothing waits; on the direct way that is still to
// be asked. Without one it counts a dial and returns nil: the caller starts it. fresh asks for a new one in any case.
func (p *Pool) take(now time.Time, fresh bool) (*conn, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		last := len(p.idle) - 1
		if last < 0 || fresh {
			p.stats.Dials++
			p.stats.Dialing++
			p.mu.Unlock()
			return nil, nil
		}
		cn := p.idle[last]
		p.idle[last] = nil
		p.idle = p.idle[:last]
		if p.expired(cn, now) {
			p.stats.Expired++
			p.mu.Unlock()
			cn.close()
			continue
		}
		p.stats.InUse++
		p.stats.Reuses++
		p.mu.Unlock()
		cn.reused = true
		if cn.direct != nil || cn.quiet() {
			return cn, nil
		}
		p.stale(cn)
	}
}

// stale drops a connection from the pool on which something waited.
func (p *Pool) stale(cn *conn) {
	p.mu.Lock()
	p.stats.InUse--
	p.stats.Reuses--
	p.stats.Stale++
	p.mu.Unlock()
	cn.close()
}

func (p *Pool) expired(cn *conn, now time.Time) bool {
	return now.Sub(cn.idleSince) >= p.idleTTL || !now.Before(cn.expires)
}

// dialled counts the end of a dial; a connection that came of it is in use.
func (p *Pool) dialled(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Dialing--
	if ok {
		p.stats.InUse++
	} else {
		p.stats.DialsFailed++
	}
}

// put takes a clean connection back.
func (p *Pool) put(cn *conn) {
	cn.freeBuf()
	cn.size = smallBuffer
	now := time.Now()
	cn.idleSince = now
	p.mu.Lock()
	p.stats.InUse--
	if p.retired || len(p.idle) >= p.maxIdle || !now.Before(cn.expires) {
		p.stats.Dropped++
		p.mu.Unlock()
		cn.close()
		return
	}
	p.idle = append(p.idle, cn)
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.idleTTL, p.sweep)
	}
	p.mu.Unlock()
}

// drop closes a connection that was in use.
func (p *Pool) drop(cn *conn) {
	p.mu.Lock()
	p.stats.InUse--
	p.stats.Dropped++
	p.mu.Unlock()
	cn.close()
}

// sweep closes the unused connections that are too old. It runs only while there are some.
func (p *Pool) sweep() {
	now := time.Now()
	var old []*conn
	p.mu.Lock()
	kept := p.idle[:0]
	for _, cn := range p.idle {
		if p.expired(cn, now) {
			old = append(old, cn)
		} else {
			kept = append(kept, cn)
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	p.stats.Expired += uint64(len(old))
	switch {
	case p.retired:
	case len(kept) == 0:
		p.sweeper = nil
	default:
		p.sweeper.Reset(max(p.idleTTL-now.Sub(kept[0].idleSince), time.Millisecond))
	}
	p.mu.Unlock()
	for _, cn := range old {
		cn.close()
	}
}

func (p *Pool) countRedial() {
	p.mu.Lock()
	p.stats.Redials++
	p.mu.Unlock()
}

func (p *Pool) countAbort() {
	p.mu.Lock()
	p.stats.Aborts++
	p.mu.Unlock()
}
