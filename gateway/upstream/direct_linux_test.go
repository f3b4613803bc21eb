package upstream

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// narrow makes the sockets of a pool take little at once.
func narrow(p *Pool) *Pool {
	dial := p.dialTCP
	p.dialTCP = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(4 << 10)
		}
		return c, err
	}
	return p
}

// A request that the socket does not take at once is written whole, under the write clock.
func TestShortWrites(t *testing.T) {
	req := hello()
	req.Body = []byte(`{"x":"` + strings.Repeat("x", 56<<10) + `"}`)
	read := make(chan struct{})
	free := sync.OnceFunc(func() { close(read) })
	p := serve(t, false, func(c *peerConn) {
		<-read
		if _, body, ok := c.request(); ok && len(body) == len(req.Body) {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
		c.untilGone()
	})
	defer free()
	ln, err := p.ln.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, ln.Control(func(fd uintptr) { // accepted sockets take it over
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10)
	}))
	require.NoError(t, err)
	pool := narrow(p.pool())

	k := bounded()
	k.Write = 50 * time.Millisecond
	c := begin(t, pool, req, k)
	requireFact(t, c.Head(), failure.ClockWrite, failure.Sent)
	c.Release()

	free()
	c = begin(t, pool, req, bounded())
	require.NoError(t, c.Head())
	body, err := drain(c)
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))
}

// A stream on which nothing comes holds no buffer, over plain TCP.
func TestSilenceHoldsNoBuffer(t *testing.T) {
	more := make(chan string)
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			for s := range more {
				c.say(s)
			}
		}
	})
	c := begin(t, p.pool(), hello(), bounded())
	require.NoError(t, c.Head())
	for range 3 {
		more <- "4\r\ndata\r\n"
		b, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, "data", string(b))
		c.WakeAt(time.Now().Add(10 * time.Millisecond))
		_, err = c.Next()
		require.Equal(t, ErrWake, err)
		require.Nil(t, c.x.conn.buf)
		c.WakeAt(time.Time{})
	}
	more <- "0\r\n\r\n"
	close(more)
	_, err := drain(c)
	require.NoError(t, err)
}

// What waits on a connection from the pool is seen before a request goes out on it, also where
// the request is too large for one write.
func TestStaleBeforeALargeRequest(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); !ok {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		if r, _, ok := c.request(); ok && r.Method == http.MethodPost {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	pool := p.pool()
	exchangeOnce(t, pool)
	exchangeOnce(t, pool) // the peer closes after it
	eventually(t, "the FIN arrives", func() bool { return !pool.idle[0].quiet() })
	req := hello()
	req.Body = []byte(`{"x":"` + strings.Repeat("x", 300<<10) + `"}`)
	c := begin(t, pool, req, bounded())
	require.NoError(t, c.Head())
	require.False(t, c.Reused())
	require.EqualValues(t, 1, pool.Stats().Stale)
}
