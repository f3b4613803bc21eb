package upstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer of which nothing more is wanted keeps its connection if its end comes in time, and
// not if something else comes, or nothing.
func TestTheEndThatComesLaterKeepsTheConnection(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		for rest, kept := range map[string]bool{
			"0\r\n\r\n": true, "0\r\nx: y\r\n\r\n": true, "4\r\nmore\r\n0\r\n\r\n": true,
			"0\r\n\r\nHTTP/1.1 200": false, "zz\r\n": false, "": false,
		} {
			more := make(chan string)
			p := serve(t, secure, func(c *peerConn) {
				if _, _, ok := c.request(); ok {
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n")
					c.say(<-more)
				}
				c.untilGone()
			})
			pool := p.pool()
			c := begin(t, pool, hello(), bounded())
			b, err := c.Next()
			require.NoError(t, err)
			require.Equal(t, "done", string(b))
			c.ReleaseEnded()
			c.Abort(nil) // cannot reach it any more
			require.Equal(t, 1, pool.Stats().InUse, "%q", rest)
			select {
			case more <- rest:
			case <-time.After(10 * time.Second):
				t.Fatal("the peer does not answer")
			}
			eventually(t, "the connection is given back", func() bool { return pool.Stats().InUse == 0 })
			require.Equal(t, kept, pool.Stats().Idle == 1, "%q", rest)
			if kept {
				require.Empty(t, pool.idle[0].buf)
			}
		}
	})
}

// What is not wanted is dropped at once: an answer that was given up in its middle costs
// nothing more.
func TestAnAnswerGivenUpIsDropped(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n")
		}
		c.untilGone()
	})
	pool := p.pool()
	c := begin(t, pool, hello(), bounded())
	_, err := c.Next()
	require.NoError(t, err)
	c.Release()
	require.Equal(t, Stats{Dials: 1, Dropped: 1}, pool.Stats())
}
