package upstream

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tooLarge = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\n\r\ntoo big"

// TestAnswerBeforeTheRequestIsSent: an early answer is the answer, whatever becomes of the
// rest of the request.
func TestAnswerBeforeTheRequestIsSent(t *testing.T) {
	for name, then := range map[string]func(c *peerConn){
		"reads no further": func(c *peerConn) { time.Sleep(2 * tick) },
		"closes":           func(*peerConn) {}, // with unread bytes: a reset follows the answer
		"reads the rest":   func(c *peerConn) { c.untilGone() },
	} {
		t.Run(name, func(t *testing.T) {
			plainAndTLS(t, func(t *testing.T, secure bool) {
				p := serve(t, secure, func(c *peerConn) {
					_ = c.tcp.SetReadBuffer(16 << 10)
					_, _ = c.br.Peek(100)
					c.say(tooLarge)
					then(c)
				})
				pool := p.pool()
				req := hello()
				req.Body = make([]byte, 32<<20)
				c := begin(t, pool, req, bounded())
				require.NoError(t, c.Head())
				require.Equal(t, 413, c.Status())
				body, err := drain(c)
				require.NoError(t, err)
				require.Equal(t, "too big", string(body))
				c.Release()
				s := pool.Stats()
				require.Zero(t, s.InUse+s.Idle, "what was half sent cannot be used again")
			})
		})
	}
}

// TestLargeRequest: every byte arrives once and the connection is kept.
func TestLargeRequest(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		var got []byte
		p := serve(t, secure, func(c *peerConn) {
			for {
				_, body, ok := c.request()
				if !ok {
					return
				}
				got = body
				c.say(okJSON)
			}
		})
		pool := p.pool()
		for _, size := range []int{0, 1, inlineSize - 300, inlineSize - 1, inlineSize, inlineSize + 1, 3*inlineSize + 7, 5 << 20} {
			req := hello()
			req.Body = make([]byte, size)
			for i := range req.Body {
				req.Body[i] = byte(i * 7 >> 3)
			}
			c := begin(t, pool, req, bounded())
			require.NoError(t, run(c))
			_, err := c.Next()
			require.Equal(t, io.EOF, err)
			require.False(t, c.Times().Sent.IsZero())
			c.Release()
			require.Equal(t, len(req.Body), len(got))
			require.True(t, string(req.Body) == string(got), "%d bytes", size)
		}
		require.EqualValues(t, 1, pool.Stats().Dials)
	})
}
