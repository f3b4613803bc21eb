package upstream

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// TestWakeInEveryPhase: each wait ends by the wake-up, can be taken up again, and still ends
// by what it waits for.
func TestWakeInEveryPhase(t *testing.T) {
	for phase := range phases() {
		t.Run(phase.name, func(t *testing.T) {
			c := begin(t, phase.pool(t), phase.req, bounded())
			for range 3 {
				at := time.Now().Add(tick / 4)
				c.WakeAt(at)
				require.Equal(t, ErrWake, run(c))
				require.False(t, time.Now().Before(at))
				require.Equal(t, ErrWake, run(c), "the time has come already")
			}
			c.WakeAt(time.Time{})
			time.AfterFunc(tick/4, func() { c.Abort(errTest) })
			requireFact(t, run(c), failure.Aborted, phase.wire)
		})
	}
}

// TestWakeThoughBytesKeepComing: a chatty upstream does not hold the wake-up off.
func TestWakeThoughBytesKeepComing(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); !ok {
			return
		}
		c.say(head200 + "\r\n")
		for {
			if _, err := c.Write([]byte(strings.Repeat(": ping\n\n", 1000))); err != nil {
				return
			}
		}
	})
	c := begin(t, p.pool(), hello(), bounded())
	c.WakeAt(time.Now().Add(tick))
	requireEnds(t, func() error { _, err := drain(c); return err }, ErrWake)
}

func requireEnds(t *testing.T, f func() error, expect error) {
	t.Helper()
	began := time.Now()
	require.Equal(t, expect, f())
	require.Less(t, time.Since(began), soon/2)
}

// rationed is a connection whose writes leave in the given sizes, each for one token.
type rationed struct {
	net.Conn
	tokens <-chan struct{}
	sizes  []int
}

func (r *rationed) Write(b []byte) (int, error) {
	done := 0
	for len(b) > 0 {
		n := len(b)
		if len(r.sizes) > 0 {
			n, r.sizes = min(n, r.sizes[0]), r.sizes[1:]
		}
		<-r.tokens // closed: no more rationing
		if _, err := r.Conn.Write(b[:n]); err != nil {
			return done, err
		}
		done += n
		b = b[n:]
	}
	return done, nil
}

// TestWakingLosesNothing cuts what the upstream sends (TLS records too) anywhere and wakes
// the waiting call at every cut: in the handshake, in heads and chunk heads, in codings. The
// answer arrives whole and once, and the connection stays usable.
func TestWakingLosesNothing(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls ", secure), func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			type script struct {
				tokens chan struct{}
				sizes  []int
				answer string
			}
			scripts := make(chan script, 1)
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					raw, err := ln.Accept()
					if err != nil {
						return
					}
					s := <-scripts
					wg.Go(func() {
						defer raw.Close()
						c := &peerConn{Conn: &rationed{Conn: raw, tokens: s.tokens, sizes: s.sizes}, p: &peer{}}
						if secure {
							c.Conn = tls.Server(c.Conn, &tls.Config{Certificates: []tls.Certificate{authority().server}})
						}
						c.init()
						answering(s.answer)(c)
					})
				}
			})
			defer wg.Wait()
			defer ln.Close()
			p := &peer{t: t, ln: ln, secure: secure}
			rapid.Check(t, func(t *rapid.T) {
				answer, body := drawAnswer(t)
				s := script{make(chan struct{}), rapid.SliceOfN(rapid.IntRange(1, 40), 0, 12).Draw(t, "sizes"), answer}
				scripts <- s
				pool := p.pool()
				defer pool.Close()
				for i := range 2 {
					c := AcquireCall()
					c.Start(pool, hello(), bounded())
					got, err := drainWoken(c, s.tokens)
					require.NoError(t, err)
					require.Equal(t, string(body), string(got))
					require.Equal(t, 200, c.Status())
					if i == 0 {
						close(s.tokens)
						s.tokens = nil
					}
					c.Release()
				}
				require.EqualValues(t, 1, pool.Stats().Dials)
				require.EqualValues(t, 1, pool.Stats().Reuses)
			})
		})
	}
}

// drainWoken drives a call to its end and hands the peer a token at each wake-up.
func drainWoken(c *Call, tokens chan<- struct{}) (body []byte, err error) {
	for {
		c.WakeAt(time.Now().Add(200 * time.Microsecond))
		b, err := c.Next()
		body = append(body, b...)
		switch err {
		case nil:
		case ErrWake:
			select {
			case tokens <- struct{}{}:
			default: // it is still on its way to ask for one, or needs none
			}
		case io.EOF:
			return body, nil
		default:
			return body, err
		}
	}
}

// drawAnswer draws an answer and its body.
func drawAnswer(t *rapid.T) (answer string, body []byte) {
	body = []byte(rapid.StringOfN(rapid.RuneFrom([]rune("data: {}\r\n")), 0, 60, -1).Draw(t, "body"))
	answer = strings.Repeat("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", rapid.IntRange(0, 2).Draw(t, "interims")) + head200
	wire := body
	coding := rapid.SampledFrom([]string{"", "gzip", "br", "zstd", "deflate"}).Draw(t, "coding")
	if coding != "" {
		answer += "Content-Encoding: " + coding + "\r\n"
		var b bytes.Buffer
		w := coders[coding](&b)
		_, _ = w.Write(body)
		_ = w.Close()
		wire = b.Bytes()
	}
	if rapid.Bool().Draw(t, "chunked") {
		answer += "Transfer-Encoding: chunked\r\n\r\n"
		for len(wire) > 0 {
			n := rapid.IntRange(1, len(wire)).Draw(t, "chunk")
			answer += fmt.Sprintf("%x\r\n%s\r\n", n, wire[:n])
			wire = wire[n:]
		}
		return answer + "0\r\nA: b\r\n\r\n", body
	}
	return answer + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(wire), wire), body
}
