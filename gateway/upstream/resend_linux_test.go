package upstream

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// blind makes the next look at each unused connection find it quiet: what it would have
// seen then arrives, in effect, between the look and the write.
func blind(p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cn := range p.idle {
		see := cn.probe.look
		cn.probe.look = func(fd uintptr) {
			cn.probe.nothing = true
			cn.probe.look = see
		}
	}
}

// settle waits until something other than silence is on every unused connection.
func settle(t *testing.T, p *Pool) {
	t.Helper()
	eventually(t, "the peer's end arrives", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, cn := range p.idle {
			if cn.quiet() {
				return false
			}
		}
		return true
	})
}

// firstThen answers the first request of the first connection and hands it over; every
// later connection is answered as usual.
func firstThen(then func(c *peerConn)) func(c *peerConn) {
	return func(c *peerConn) {
		if c.nth > 1 {
			answering(okJSON)(c)
			return
		}
		if _, _, ok := c.request(); ok {
			c.say(okJSON)
			then(c)
		}
	}
}

func largeHello() *Request {
	r := hello()
	r.Body = []byte(strings.Repeat("x", 8<<20))
	return r
}

// TestClosedUnread: a pooled connection that the peer had closed before it read anything is
// replaced inside the call, for small and large requests.
func TestClosedUnread(t *testing.T) {
	for name, end := range map[string]func(c *peerConn){
		"FIN":   func(*peerConn) {},
		"reset": func(c *peerConn) { c.reset() }, // before anything was written: no byte leaves
	} {
		for size, req := range map[string]*Request{"small": hello(), "large": largeHello()} {
			t.Run(name+" "+size, func(t *testing.T) {
				plainAndTLS(t, func(t *testing.T, secure bool) {
					p := serve(t, secure, firstThen(end))
					pool := p.pool()
					exchangeOnce(t, pool)
					settle(t, pool)
					blind(pool)
					c := begin(t, pool, req, bounded())
					require.NoError(t, run(c))
					require.False(t, c.Reused())
					c.Release()
					require.EqualValues(t, 2, p.requests.Load())
					s := pool.Stats()
					require.Equal(t, Stats{Idle: 1, Dials: 2, Reuses: 1, Redials: 1, Dropped: 1}, s)
				})
			})
		}
	}
}

// TestClosedUnreadAndGone: when the replacement cannot be made, nothing was sent.
func TestClosedUnreadAndGone(t *testing.T) {
	p := serve(t, false, firstThen(func(c *peerConn) { _ = c.p.ln.Close() }))
	pool := p.pool()
	exchangeOnce(t, pool)
	settle(t, pool)
	blind(pool)
	c := begin(t, pool, hello(), bounded())
	requireFact(t, c.Head(), failure.Connect, failure.NotSent)
	require.Equal(t, failure.NotSent, c.Wire())
	require.EqualValues(t, 1, p.requests.Load())
}

// TestSeenBeforeUse: usually the look before use is enough.
func TestSeenBeforeUse(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		for name, end := range map[string]func(c *peerConn){
			"FIN":    func(*peerConn) {},
			"reset":  func(c *peerConn) { c.reset() },
			"answer": func(c *peerConn) { c.say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n") },
		} {
			t.Run(name, func(t *testing.T) {
				unused := make(chan struct{})
				p := serve(t, secure, firstThen(func(c *peerConn) { <-unused; end(c) }))
				pool := p.pool()
				exchangeOnce(t, pool)
				close(unused)
				settle(t, pool)
				exchangeOnce(t, pool)
				s := pool.Stats()
				require.Equal(t, Stats{Idle: 1, Dials: 2, Stale: 1}, s)
			})
		}
	})
}

// TestReadAndClosed: a peer that has read a request, all of it or some, and then ends the
// connection is never sent it again: by FIN, or by a reset within the time by which
// acknowledgements are delayed, when the kernel knows of none.
func TestReadAndClosed(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(c *peerConn)
		fact failure.Transport
		// either way it ends, for a peer whose unread bytes turn its FIN into a reset
		or   failure.Transport
		runs int
	}{
		{name: "all, then FIN", end: func(c *peerConn) { _, _, _ = c.request() }, fact: failure.EOF, runs: 10},
		{name: "all, then reset at once", end: func(c *peerConn) { _, _, _ = c.request(); c.reset() }, fact: failure.Reset, runs: 50},
		{name: "all, then reset within the delayed acknowledgement", end: func(c *peerConn) {
			_, _, _ = c.request()
			time.Sleep(time.Millisecond)
			c.reset()
		}, fact: failure.Reset, runs: 50},
		{name: "a byte, then close", end: func(c *peerConn) {
			_, _ = c.br.ReadByte()
			c.p.requests.Add(1)
		}, fact: failure.Reset, or: failure.EOF, runs: 10},
		{name: "all, a byte of the answer, then FIN", end: func(c *peerConn) { _, _, _ = c.request(); c.say("H") }, fact: failure.EOF, runs: 10},
		{name: "half closed, then all", end: func(c *peerConn) {
			_, _, _ = c.request()
			_ = c.tcp.CloseWrite()
			c.untilGone()
		}, fact: failure.EOF, runs: 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			plainAndTLS(t, func(t *testing.T, secure bool) {
				for range c.runs {
					p := serve(t, secure, firstThen(c.end))
					pool := p.pool()
					exchangeOnce(t, pool)
					call := AcquireCall()
					call.Start(pool, hello(), bounded())
					err := call.Head()
					require.True(t, call.Reused())
					var e *Error
					require.ErrorAs(t, err, &e)
					require.Contains(t, []failure.Transport{c.fact, c.or}, e.Transport, "%v", err)
					require.Equal(t, failure.Sent, e.Wire, "%v", err)
					call.Release()
					require.EqualValues(t, 2, p.requests.Load())
					require.EqualValues(t, 1, p.accepted.Load())
					require.Zero(t, pool.Stats().Redials)
					p.stop()
				}
			})
		})
	}
}

// TestNewConnectionIsNotReplaced: the exception is for connections from the pool alone; that
// a new one was closed unread is still told as a fact.
func TestNewConnectionIsNotReplaced(t *testing.T) {
	p := serve(t, false, func(*peerConn) {})
	pool := p.pool()
	dial := pool.dialTCP
	pool.dialTCP = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		cn := newConn(&meter{Conn: c}, c, time.Now())
		eventually(t, "the FIN arrives", func() bool { return cn.probe.finSeen(cn.ctl) })
		return c, nil
	}
	c := begin(t, pool, hello(), bounded())
	requireFact(t, c.Head(), failure.EOF, failure.NotSent)
	require.EqualValues(t, 1, p.accepted.Load())
	require.Equal(t, Stats{Dials: 1, Dropped: 1}, pool.Stats())
}
