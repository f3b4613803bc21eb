package upstream

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// join passes bytes between a proxy's two connections until both have ended.
func join(c *peerConn, to net.Conn) {
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, c.br)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c.Conn, to)
	_ = c.Conn.Close()
	<-done
}

func TestThroughConnect(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, answering(okJSON))
		asked := make(chan *http.Request, 2)
		prx := serve(t, false, func(c *peerConn) {
			r, err := http.ReadRequest(c.br)
			if err != nil {
				return
			}
			asked <- r
			to, err := net.Dial("tcp", r.Host)
			if err != nil {
				return
			}
			c.say("HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
			join(c, to)
		})
		pool := p.pool(func(o *Options) { o.Target.Proxy = "http://us%40er:pass%3Aword@" + prx.ln.Addr().String() })
		exchangeOnce(t, pool)
		exchangeOnce(t, pool)
		r := <-asked
		require.Equal(t, "CONNECT", r.Method)
		require.Equal(t, p.ln.Addr().String(), r.Host)
		require.Equal(t, "Basic dXNAZXI6cGFzczp3b3Jk", r.Header.Get("Proxy-Authorization"))
		require.Empty(t, r.Header.Get("Authorization"))
		require.Equal(t, Stats{Idle: 1, Dials: 1, Reuses: 1}, pool.Stats())
		pool.Close()
	})
}

func TestConnectRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"407":            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=canary\r\n\r\n",
		"502":            "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\ncanary",
		"not HTTP":       "canary canary\r\n\r\n",
		"no status":      "HTTP/1.1 canary\r\n\r\n",
		"nothing":        "",
		"half":           "HTTP/1.1 200 OK\r\n",
		"bytes behind":   "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ncanary",
		"too large":      "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("canary", 4000) + "\r\n\r\n",
		"short nonsense": "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			prx := serve(t, false, func(c *peerConn) {
				if _, err := http.ReadRequest(c.br); err == nil {
					c.say(answer)
				}
			})
			pool := poolTo(t, "http://upstream.test", func(o *Options) { o.Target.Proxy = "http://u:canary@" + prx.ln.Addr().String() })
			requireFact(t, begin(t, pool, hello(), bounded()).Head(), failure.Connect, failure.NotSent)
			require.Equal(t, Stats{Dials: 1, DialsFailed: 1}, pool.Stats())
		})
	}
}

func TestThroughSocks(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		p := serve(t, secure, answering(okJSON))
		said := make(chan []byte, 1)
		prx := serve(t, false, func(c *peerConn) { // RFC 1928 and 1929, just enough
			read := func(n int) []byte {
				b := make([]byte, n)
				_, _ = io.ReadFull(c.br, b)
				return b
			}
			greeting := read(2)
			if !bytes.Contains(read(int(greeting[1])), []byte{2}) {
				return
			}
			c.say("\x05\x02")
			read(1)
			user := read(int(read(1)[0]))
			password := read(int(read(1)[0]))
			c.say("\x01\x00")
			ask := read(4)
			name := read(int(read(1)[0]))
			read(2)
			said <- bytes.Join([][]byte{user, password, ask, name}, []byte("|"))
			to, err := net.Dial("tcp", p.ln.Addr().String())
			if err != nil {
				return
			}
			c.say("\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x01")
			join(c, to)
		})
		pool := p.pool(func(o *Options) {
			o.Target.Host = "upstream.test" // only the proxy knows it
			o.Target.Proxy = "socks5://user:password@" + prx.ln.Addr().String()
		})
		exchangeOnce(t, pool)
		exchangeOnce(t, pool)
		require.Equal(t, "user|password|\x05\x01\x00\x03|upstream.test", string(<-said))
		require.Equal(t, Stats{Idle: 1, Dials: 1, Reuses: 1}, pool.Stats())
		pool.Close()
	})
}

func TestSocksRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"no method":   "\x05\xff",
		"not SOCKS":   "HTTP/1.1 400 Bad Request\r\n\r\n",
		"unreachable": "\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00",
		"nothing":     "",
	} {
		t.Run(name, func(t *testing.T) {
			prx := serve(t, false, func(c *peerConn) {
				_, _ = c.br.Peek(3)
				c.say(answer)
			})
			pool := poolTo(t, "http://upstream.test", func(o *Options) { o.Target.Proxy = "socks5://" + prx.ln.Addr().String() })
			requireFact(t, begin(t, pool, hello(), bounded()).Head(), failure.Connect, failure.NotSent)
		})
	}
}
