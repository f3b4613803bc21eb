package upstream

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// phase is a wait that nothing but an abort or a deadline ends.
type phase struct {
	name string
	pool func(t *testing.T) *Pool
	req  *Request
	wire failure.Wire
}

// run drives a call until it ends.
func run(c *Call) error {
	if err := c.Head(); err != nil {
		return err
	}
	_, err := drain(c)
	return err
}

// phases are all the waits of an exchange.
func phases() iter.Seq[phase] {
	return func(yield func(phase) bool) {
		large := hello()
		large.Body = []byte(strings.Repeat("x", 32<<20))
		for _, ph := range []phase{
			{name: "connect", req: hello(), wire: failure.NotSent, pool: func(t *testing.T) *Pool { return poolTo(t, "http://"+deaf(t)) }},
			{name: "tls handshake", req: hello(), wire: failure.NotSent, pool: func(t *testing.T) *Pool {
				p := serve(t, false, func(c *peerConn) { c.untilGone() })
				return poolTo(t, "https://"+p.ln.Addr().String())
			}},
			{name: "proxy handshake", req: hello(), wire: failure.NotSent, pool: func(t *testing.T) *Pool {
				p := serve(t, false, func(c *peerConn) { c.untilGone() })
				return poolTo(t, "http://127.0.0.1:1", func(o *Options) { o.Target.Proxy = "http://" + p.ln.Addr().String() })
			}},
			{name: "socks handshake", req: hello(), wire: failure.NotSent, pool: func(t *testing.T) *Pool {
				p := serve(t, false, func(c *peerConn) { c.untilGone() })
				return poolTo(t, "http://127.0.0.1:1", func(o *Options) { o.Target.Proxy = "socks5://" + p.ln.Addr().String() })
			}},
		} {
			if !yield(ph) {
				return
			}
		}
		for _, secure := range []bool{false, true} {
			kind := map[bool]string{false: " plain", true: " tls"}[secure]
			to := func(handle func(c *peerConn)) func(t *testing.T) *Pool {
				return func(t *testing.T) *Pool { return serve(t, secure, handle).pool() }
			}
			for _, ph := range []phase{
				{name: "write", req: large, wire: failure.Sent, pool: func(t *testing.T) *Pool {
					stop := make(chan struct{})
					p := serve(t, secure, func(c *peerConn) {
						_ = c.tcp.SetReadBuffer(4 << 10)
						_, _ = c.br.Peek(1)
						<-stop
					})
					t.Cleanup(func() { close(stop) })
					return p.pool()
				}},
				{name: "first byte", req: hello(), wire: failure.Sent, pool: to(func(c *peerConn) { c.untilGone() })},
				{name: "half a head", req: hello(), wire: failure.Sent, pool: to(func(c *peerConn) {
					_, _, _ = c.request()
					c.say("HTTP/1.1 200 OK\r\nA")
					c.untilGone()
				})},
				{name: "body", req: hello(), wire: failure.HeadersSeen, pool: to(func(c *peerConn) {
					_, _, _ = c.request()
					c.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na")
					c.untilGone()
				})},
				{name: "half a chunk head", req: hello(), wire: failure.HeadersSeen, pool: to(func(c *peerConn) {
					_, _, _ = c.request()
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1")
					c.untilGone()
				})},
				{name: "coded body", req: hello(), wire: failure.HeadersSeen, pool: to(func(c *peerConn) {
					_, _, _ = c.request()
					c.say("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b")
					c.untilGone()
				})},
				{name: "answer during the upload", req: large, wire: failure.HeadersSeen, pool: func(t *testing.T) *Pool {
					stop := make(chan struct{})
					p := serve(t, secure, func(c *peerConn) {
						_ = c.tcp.SetReadBuffer(4 << 10)
						_, _ = c.br.Peek(1)
						c.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na")
						<-stop
					})
					t.Cleanup(func() { close(stop) })
					return p.pool()
				}},
			} {
				ph.name += kind
				if !yield(ph) {
					return
				}
			}
		}
	}
}

func TestAbortInEveryPhase(t *testing.T) {
	for phase := range phases() {
		t.Run(phase.name, func(t *testing.T) {
			pool := phase.pool(t)
			best := soon
			for range 5 { // once in a while the machine has other things to do
				best = min(best, abortAfter(t, pool, phase, tick))
				if best < 20*time.Millisecond {
					return
				}
			}
			t.Fatalf("returned %v after the abort at best", best)
		})
	}
}

// abortAfter aborts a call that waits in the phase and returns how long it took to end.
func abortAfter(t *testing.T, pool *Pool, phase phase, delay time.Duration) time.Duration {
	c := AcquireCall()
	defer c.Release()
	c.Start(pool, phase.req, bounded())
	before := pool.Stats().Aborts
	aborted := make(chan time.Time, 1)
	time.AfterFunc(delay, func() {
		at := time.Now()
		c.Abort(errTest)
		c.Abort(nil)
		aborted <- at
	})
	err := run(c)
	took := time.Since(<-aborted)
	requireFact(t, err, failure.Aborted, phase.wire)
	require.ErrorIs(t, err, errTest)
	c.Release()
	c.Abort(nil)
	eventually(t, "nothing is in use", func() bool { s := pool.Stats(); return s.InUse+s.Dialing == 0 })
	require.Zero(t, pool.Stats().Idle)
	require.Equal(t, before+1, pool.Stats().Aborts)
	return took
}

func TestAbortBeforeAnything(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	exchangeOnce(t, pool)
	c := AcquireCall()
	defer c.Release()
	c.Abort(errTest)
	c.Start(pool, hello(), bounded())
	requireFact(t, c.Head(), failure.Aborted, failure.NotSent)
	require.EqualValues(t, 1, p.requests.Load())
	require.Equal(t, 1, pool.Stats().Idle)
}

// TestAbortBetweenPieces: after Abort has returned no further byte is handed out, though
// some are in the buffer; and the peer sees the end although the owner does nothing.
func TestAbortBetweenPieces(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		gone := make(chan struct{})
		p := serve(t, secure, func(c *peerConn) {
			if _, _, ok := c.request(); ok {
				c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n")
				c.untilGone()
				close(gone)
			}
		})
		c := begin(t, p.pool(), hello(), bounded())
		_, err := c.Next()
		require.NoError(t, err)
		require.True(t, c.More())
		c.Abort(errTest)
		select {
		case <-gone:
		case <-time.After(soon):
			t.Fatal("the peer was not told")
		}
		_, err = c.Next()
		requireFact(t, err, failure.Aborted, failure.HeadersSeen)
	})
}

// TestLateAbort: an Abort after Release hits nobody, least of all the next call.
func TestLateAbort(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	for range 100 {
		old := AcquireCall()
		old.Start(pool, hello(), bounded())
		require.NoError(t, run(old))
		old.Release()

		c := AcquireCall()
		c.Start(pool, hello(), bounded())
		old.Abort(errTest)
		require.NoError(t, run(c))
		c.Release()
		old.Abort(errTest)
	}
	require.EqualValues(t, 1, pool.Stats().Dials)
	require.Zero(t, pool.Stats().Aborts)
}

// TestReleaseInEveryPhase: a call may be given up wherever it is.
func TestReleaseInEveryPhase(t *testing.T) {
	for phase := range phases() {
		t.Run(phase.name, func(t *testing.T) {
			pool := phase.pool(t)
			c := begin(t, pool, phase.req, bounded())
			c.WakeAt(time.Now().Add(tick))
			require.Equal(t, ErrWake, run(c))
			c.Release()
			eventually(t, "nothing is in use", func() bool { s := pool.Stats(); return s.InUse+s.Dialing == 0 })
			require.Zero(t, pool.Stats().Idle)
		})
	}
}
