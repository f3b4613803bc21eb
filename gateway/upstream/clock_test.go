package upstream

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// tick is a clock short enough for a test and long enough to tell phases apart.
const tick = 60 * time.Millisecond

// requireClock runs a phase that only the clock under test may end.
func requireClock(t *testing.T, phase func() error, fact failure.Transport, wire failure.Wire) {
	t.Helper()
	began := time.Now()
	err := phase()
	requireFact(t, err, fact, wire)
	took := time.Since(began)
	require.Less(t, took, soon/2, "another clock ended it")
}

// deaf is a listener whose backlog is full, so that connecting to it hangs.
func deaf(t *testing.T) string {
	t.Helper()
	addr := listenBacklog(t)
	var held []net.Conn
	t.Cleanup(func() {
		for _, c := range held {
			_ = c.Close()
		}
	})
	for range 64 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return addr
		}
		held = append(held, c)
	}
	t.Skip("this system lets every connection in")
	return ""
}

func poolTo(t *testing.T, url string, change ...func(*Options)) *Pool {
	t.Helper()
	target, err := ParseTarget(url)
	require.NoError(t, err)
	o := Options{Target: target}
	for _, f := range change {
		f(&o)
	}
	p, err := NewPool(o)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func TestConnectClock(t *testing.T) {
	pool := poolTo(t, "http://"+deaf(t))
	k := bounded()
	k.Connect = tick
	c := begin(t, pool, hello(), k)
	requireClock(t, c.Head, failure.ClockConnect, failure.NotSent)
	require.True(t, c.Times().Connected.IsZero())
	eventually(t, "the dial ends", func() bool { return pool.Stats().Dialing == 0 })
	require.EqualValues(t, 1, pool.Stats().DialsFailed)
}

func TestTLSClock(t *testing.T) {
	p := serve(t, false, func(c *peerConn) { c.untilGone() }) // never answers the handshake
	for name, k := range map[string]Clocks{
		"its own":           {TLS: tick, Connect: soon, Deadline: time.Now().Add(soon)},
		"as connect's rest": {Connect: tick, Deadline: time.Now().Add(soon)},
	} {
		t.Run(name, func(t *testing.T) {
			pool := poolTo(t, "https://"+p.ln.Addr().String())
			c := begin(t, pool, hello(), k)
			requireClock(t, c.Head, failure.ClockConnect, failure.NotSent)
		})
	}
}

func TestWriteClock(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		stop := make(chan struct{})
		p := serve(t, secure, func(c *peerConn) {
			_ = c.tcp.SetReadBuffer(4 << 10)
			if secure {
				_, _ = c.br.Peek(1)
			}
			<-stop
		})
		t.Cleanup(func() { close(stop) })
		k := bounded()
		k.Write = tick
		req := hello()
		req.Body = []byte(strings.Repeat("x", 32<<20))
		c := begin(t, p.pool(), req, k)
		requireClock(t, c.Head, failure.ClockWrite, failure.Sent)
		require.True(t, c.Times().Sent.IsZero())
	})
}

func TestSlowUploadIsNotTooSlow(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, func(c *peerConn) {
			_ = c.tcp.SetReadBuffer(32 << 10)
			buf := make([]byte, 1<<20)
			for n := 0; n < 4<<20; { // far longer than the write clock in all
				m, err := c.br.Read(buf)
				if err != nil {
					return
				}
				if n += m; n%(1<<20) < m {
					time.Sleep(tick)
				}
			}
			c.say(okJSON)
			c.untilGone()
		})
		k := bounded()
		k.Write, k.FirstByte = soon/2, soon/2
		req := hello()
		req.Body = []byte(strings.Repeat("x", 4<<20))
		c := begin(t, p.pool(), req, k)
		require.NoError(t, c.Head())
		body, err := drain(c)
		require.NoError(t, err)
		require.Equal(t, `{"hello":"you"}`, string(body))
	})
}

func TestFirstByteClock(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		for name, said := range map[string]string{
			"silence":       "",
			"half a head":   "HTTP/1.1 200 OK\r\nContent-",
			"informational": "HTTP/1.1 100 Continue\r\n\r\n",
		} {
			t.Run(name, func(t *testing.T) {
				p := serve(t, secure, func(c *peerConn) {
					if _, _, ok := c.request(); ok {
						c.say(said)
						c.untilGone()
					}
				})
				k := bounded()
				k.FirstByte = tick
				c := begin(t, p.pool(), hello(), k)
				requireClock(t, c.Head, failure.ClockFirstByte, failure.Sent)
				require.GreaterOrEqual(t, time.Since(c.Times().Sent), tick)
				require.Equal(t, said != "", !c.Times().FirstByte.IsZero())
			})
		}
	})
}

// TestEndlessHead: a head that never ends is bounded by the first-byte clock though bytes
// keep coming, and by its size.
func TestEndlessHead(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		fact failure.Transport
		k    func(*Clocks)
	}{
		"slow": {"X: y\r\n", failure.ClockFirstByte, func(k *Clocks) { k.FirstByte = tick }},
		"fast": {"X: " + strings.Repeat("y", 1000) + "\r\n", failure.Malformed, func(*Clocks) {}},
		"line": {strings.Repeat("y", 1000), failure.Malformed, func(*Clocks) {}},
	} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, false, func(pc *peerConn) {
				if _, _, ok := pc.request(); !ok {
					return
				}
				pc.say("HTTP/1.1 200 OK\r\n")
				for {
					if _, err := pc.Write([]byte(c.line)); err != nil {
						return
					}
					if name == "slow" {
						time.Sleep(time.Millisecond)
					}
				}
			})
			k := bounded()
			c.k(&k)
			call := begin(t, p.pool(), hello(), k)
			requireClock(t, call.Head, c.fact, failure.Sent)
		})
	}
}

func TestFirstOutputClock(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, func(c *peerConn) { // comments for ever, but no output
			if _, _, ok := c.request(); !ok {
				return
			}
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			for {
				if _, err := c.Write([]byte("3\r\n:\n\n\r\n")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		k := bounded()
		k.FirstOutput = tick
		c := begin(t, p.pool(), hello(), k)
		require.NoError(t, c.Head())
		requireClock(t, func() error { _, err := drain(c); return err }, failure.ClockFirstOutput, failure.HeadersSeen)
		require.GreaterOrEqual(t, time.Since(c.Times().Sent), tick)
	})
}

func TestFirstOutputClockBeforeTheHead(t *testing.T) {
	p := serve(t, false, func(c *peerConn) { c.untilGone() })
	k := bounded()
	k.FirstOutput = tick
	c := begin(t, p.pool(), hello(), k)
	requireClock(t, c.Head, failure.ClockFirstByte, failure.Sent)
}

func TestIdleClock(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, func(c *peerConn) {
			if _, _, ok := c.request(); !ok {
				return
			}
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			for range 10 { // longer than the clock, never silent that long; framing bytes count too
				time.Sleep(tick / 2)
				c.say("1")
				time.Sleep(tick / 2)
				c.say("\r\nb\r\n")
			}
			c.untilGone()
		})
		k := bounded()
		k.Idle, k.FirstOutput = 4*tick, soon
		c := begin(t, p.pool(), hello(), k)
		require.NoError(t, c.Head())
		var got string
		c.OutputSeen()
		requireClock(t, func() error {
			for {
				b, err := c.Next()
				if err != nil {
					return err
				}
				got += string(b)
			}
		}, failure.ClockIdle, failure.HeadersSeen)
		require.Equal(t, "abbbbbbbbbb", got)
		require.GreaterOrEqual(t, time.Since(c.Times().LastByte), 4*tick)
	})
}

// TestIdleClockCountsOnlyWaiting: a slow reader of ours is not the upstream's silence.
func TestIdleClockCountsOnlyWaiting(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			time.Sleep(tick)
			c.say("1\r\nb\r\n0\r\n\r\n")
			c.untilGone()
		}
	})
	k := bounded()
	k.Idle = 2 * tick
	c := begin(t, p.pool(), hello(), k)
	c.OutputSeen()
	_, err := c.Next()
	require.NoError(t, err)
	time.Sleep(4 * tick)
	b, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, "b", string(b))
}

// TestIdleClockOutlivesWakeUps: heartbeats do not keep a silent upstream alive.
func TestIdleClockOutlivesWakeUps(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			c.untilGone()
		}
	})
	k := bounded()
	k.Idle = 4 * tick
	c := begin(t, p.pool(), hello(), k)
	c.OutputSeen()
	_, err := c.Next()
	require.NoError(t, err)
	woken := 0
	requireClock(t, func() error {
		for {
			c.WakeAt(time.Now().Add(tick))
			_, err := c.Next()
			if err != ErrWake {
				return err
			}
			woken++
		}
	}, failure.ClockIdle, failure.HeadersSeen)
	require.Greater(t, woken, 0)
}

// TestDeadlineInEveryPhase: the absolute deadline ends every phase, as what it was said to be.
func TestDeadlineInEveryPhase(t *testing.T) {
	for phase := range phases() {
		t.Run(phase.name, func(t *testing.T) {
			k := bounded()
			k.Deadline, k.DeadlineFact = time.Now().Add(tick), failure.ClockReserve
			c := begin(t, phase.pool(t), phase.req, k)
			requireClock(t, func() error { return run(c) }, failure.ClockReserve, phase.wire)
		})
	}
}

func TestDeadlineThatMoves(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			time.Sleep(3 * tick)
			c.say("1\r\nb\r\n")
			c.untilGone()
		}
	})
	k := bounded()
	k.Deadline = time.Now().Add(2 * tick)
	c := begin(t, p.pool(), hello(), k)
	_, err := c.Next()
	require.NoError(t, err)
	c.SetDeadline(time.Now().Add(soon), failure.ClockTotal) // the stream is committed
	b, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, "b", string(b))
	c.SetDeadline(time.Now().Add(tick), failure.ClockReserve) // and comes nearer again
	requireClock(t, func() error { _, err := c.Next(); return err }, failure.ClockReserve, failure.HeadersSeen)
}

func TestDeadlineAlreadyOver(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	exchangeOnce(t, pool)
	k := bounded()
	k.Deadline = time.Now().Add(-time.Second)
	c := begin(t, pool, hello(), k)
	requireFact(t, c.Head(), failure.ClockTotal, failure.NotSent)
	require.EqualValues(t, 1, p.requests.Load())
}

// TestLazyDeadlines: what an earlier call left on the socket neither ends nor delays the
// clocks of the next one.
func TestLazyDeadlines(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, func(c *peerConn) {
			for {
				r, _, ok := c.request()
				if !ok {
					return
				}
				switch r.Header.Get("Do") {
				case "wait":
					time.Sleep(3 * tick)
				case "hang":
					c.untilGone()
				}
				c.say(okJSON)
			}
		})
		pool := p.pool()
		ask := func(do string, k Clocks) error {
			req := hello()
			req.Header = append(req.Header, Field{"Do", do})
			c := AcquireCall()
			defer c.Release()
			c.Start(pool, req, k)
			if err := c.Head(); err != nil {
				return err
			}
			_, err := drain(c)
			return err
		}
		short, long := bounded(), bounded()
		short.Write, short.FirstByte, short.Idle = tick, tick, tick
		none := Clocks{}
		for range 3 {
			require.NoError(t, ask("now", short))
			time.Sleep(2 * tick)
			require.NoError(t, ask("wait", long))
			require.NoError(t, ask("wait", none))
		}
		require.EqualValues(t, 1, pool.Stats().Dials)
		requireClock(t, func() error { return ask("hang", short) }, failure.ClockFirstByte, failure.Sent)
	})
}
