package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func TestAnswerOverOneConnection(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		heads := make(chan *http.Request, 8)
		p := serve(t, secure, func(c *peerConn) {
			for {
				r, body, ok := c.request()
				if !ok {
					return
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				heads <- r
				c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Thing: one\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}")
			}
		})
		pool := p.pool()
		for i := range 3 {
			c := begin(t, pool, hello(), bounded())
			require.Equal(t, failure.NotSent, c.Wire())
			require.Nil(t, c.Header("x-thing"))
			require.Equal(t, -1, c.Length())
			require.NoError(t, c.Head())
			require.Equal(t, 2, c.Length())
			require.NoError(t, c.Head(), "asked again it says the same")
			require.Equal(t, 200, c.Status())
			require.Equal(t, failure.HeadersSeen, c.Wire())
			require.Equal(t, "application/json", string(c.ContentType()))
			require.Equal(t, "one", string(c.Header("x-thing")))
			require.Nil(t, c.Header("x-other"))
			names := map[string]string{}
			c.VisitHeaders(func(n, v []byte) { names[string(n)] = string(v) })
			require.Equal(t, "one", names["X-Thing"])
			body, err := drain(c)
			require.NoError(t, err)
			require.Equal(t, "{}", string(body))
			_, err = c.Next()
			require.Equal(t, io.EOF, err)
			require.Equal(t, i > 0, c.Reused())
			at := c.Times()
			require.False(t, at.Connected.Before(at.Started) || at.Sent.Before(at.Connected) || at.FirstByte.Before(at.Sent) ||
				at.Head.Before(at.FirstByte) || at.LastByte.Before(at.FirstByte), "%+v", at)
			c.Release()
			c.Release()

			r := <-heads
			require.Equal(t, "POST", r.Method)
			require.Equal(t, "/v1/chat/completions", r.RequestURI)
			require.Equal(t, p.ln.Addr().String(), r.Host)
			require.Equal(t, "Bearer sk-canary", r.Header.Get("Authorization"))
			require.Equal(t, "identity", r.Header.Get("Accept-Encoding"))
			require.EqualValues(t, len(hello().Body), r.ContentLength)
			require.Len(t, r.Header, 4, "%v", r.Header)
			sent, _ := io.ReadAll(r.Body)
			require.Equal(t, hello().Body, sent)
		}
		s := pool.Stats()
		require.Equal(t, Stats{Idle: 1, Dials: 1, Reuses: 2}, s)
		require.EqualValues(t, 1, p.accepted.Load())
	})
}

func TestRequestLines(t *testing.T) {
	for _, c := range []struct {
		base   string
		req    Request
		expect string
	}{
		{"http://h/v1/", Request{Path: "/a"}, "POST /v1/a HTTP/1.1\r\nHost: h\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n"},
		{"http://h:8080?v=1", Request{Path: "/a?b=c", Method: "GET"}, "GET /a?b=c&v=1 HTTP/1.1\r\nHost: h:8080\r\nAccept-Encoding: identity\r\n\r\n"},
		{"https://[::1]:443/x?v=1", Request{Path: "/a", Body: []byte("12")}, "POST /x/a?v=1 HTTP/1.1\r\nHost: [::1]\r\nAccept-Encoding: identity\r\nContent-Length: 2\r\n\r\n"},
		{"http://h", Request{Path: "/", Header: []Field{{"X", "y"}, {"hOST", "other"}}}, "POST / HTTP/1.1\r\nHost: other\r\nX: y\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n"},
	} {
		target, err := ParseTarget(c.base)
		require.NoError(t, err)
		require.NoError(t, c.req.Check())
		got := c.req.appendHead(nil, &target)
		require.Equal(t, c.expect, string(got))
		require.LessOrEqual(t, len(got), c.req.headSize(&target))
	}
}

func TestRequestsThatAreNeverSent(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	for name, r := range map[string]Request{
		"method":       {Method: "GE T", Path: "/"},
		"no path":      {},
		"relative":     {Path: "a"},
		"blank":        {Path: "/a b"},
		"fragment":     {Path: "/a#b"},
		"CR in path":   {Path: "/a\rb"},
		"name":         {Path: "/", Header: []Field{{"a b", "c"}}},
		"no name":      {Path: "/", Header: []Field{{"", "c"}}},
		"LF in name":   {Path: "/", Header: []Field{{"a\nb", "c"}}},
		"LF in value":  {Path: "/", Header: []Field{{"a", "canary\nb: c"}}},
		"CR in value":  {Path: "/", Header: []Field{{"a", "canary\rb"}}},
		"NUL in value": {Path: "/", Header: []Field{{"a", "canary\x00"}}},
		"length":       {Path: "/", Header: []Field{{"Content-Length", "3"}}},
		"coding":       {Path: "/", Header: []Field{{"transfer-encoding", "chunked"}}},
		"connection":   {Path: "/", Header: []Field{{"CONNECTION", "close"}}},
		"te":           {Path: "/", Header: []Field{{"te", "trailers"}}},
		"expect":       {Path: "/", Header: []Field{{"Expect", "100-continue"}}},
		"upgrade":      {Path: "/", Header: []Field{{"Upgrade", "h2c"}}},
		"trailer":      {Path: "/", Header: []Field{{"Trailer", "x"}}},
		"keep-alive":   {Path: "/", Header: []Field{{"Keep-Alive", "x"}}},
		"accept":       {Path: "/", Header: []Field{{"Accept-Encoding", "gzip"}}},
		"proxy":        {Path: "/", Header: []Field{{"Proxy-Authorization", "canary"}}},
		"proxy conn":   {Path: "/", Header: []Field{{"Proxy-Connection", "close"}}},
		"two hosts":    {Path: "/", Header: []Field{{"Host", "a"}, {"host", "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, pool, &r, bounded())
			err := c.Head()
			requireFact(t, err, failure.Malformed, failure.NotSent)
			require.ErrorIs(t, err, ErrRequest)
			require.Equal(t, err, c.Head())
			_, again := c.Next()
			require.Equal(t, err, again)
		})
	}
	require.Zero(t, p.accepted.Load())
}

// TestBodies sends each answer in one piece, byte by byte, and over both kinds of connection.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		name, answer, body string
		method             string
		close              bool // the peer closes after the answer
		kept               bool // the connection may be used again
	}{
		{name: "length", answer: okJSON, body: `{"hello":"you"}`, kept: true},
		{name: "empty", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", kept: true},
		{name: "no reason", answer: "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", body: "x", kept: true},
		{name: "chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=\"y\"\r\nd\r\n0A \t\r\n0123456789\r\n0\r\n\r\n", body: "abcd0123456789", kept: true},
		{name: "no chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", kept: true},
		{name: "trailers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n", body: "x", kept: true},
		{name: "to the close", answer: "HTTP/1.1 200 OK\r\n\r\nall of it", body: "all of it", close: true},
		{name: "close said", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", body: "x"},
		{name: "1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", body: "x"},
		{name: "1.0 kept", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", body: "x", kept: true},
		{name: "1.0 to the close", answer: "HTTP/1.0 200 OK\r\n\r\nx", body: "x", close: true},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", kept: true},
		{name: "304", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", kept: true},
		{name: "HEAD", method: "HEAD", answer: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", kept: true},
		{name: "redirect", answer: "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 1\r\n\r\nx", body: "x", kept: true},
		{name: "informational", answer: "HTTP/1.1 100 Continue\r\n\r\n" + strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 7) + okJSON, body: `{"hello":"you"}`, kept: true},
		{name: "stray bytes", answer: okJSON + "x", body: `{"hello":"you"}`},
		{name: "stray answer", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + okJSON, body: "x"},
		{name: "large", answer: "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("0123456789", 30000), body: strings.Repeat("0123456789", 30000), kept: true},
		{name: "large head", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX: " + strings.Repeat("x", 60000) + "\r\n\r\nx", body: "x", kept: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			plainAndTLS(t, func(t *testing.T, secure bool) {
				for _, piece := range []int{1 << 20, 1} {
					if piece == 1 && len(c.answer) > 1000 {
						piece = 4099
					}
					p := serve(t, secure, func(pc *peerConn) {
						_ = pc.tcp.SetNoDelay(true)
						if _, _, ok := pc.request(); !ok {
							return
						}
						for rest := c.answer; rest != ""; {
							n := min(piece, len(rest))
							pc.say(rest[:n])
							rest = rest[n:]
						}
						if !c.close {
							pc.untilGone()
						}
					})
					pool := p.pool()
					req := hello()
					req.Method = c.method
					call := begin(t, pool, req, bounded())
					require.NoError(t, call.Head())
					body, err := drain(call)
					require.NoError(t, err)
					require.Equal(t, c.body, string(body))
					call.Release()
					s := pool.Stats()
					require.Zero(t, s.InUse)
					if c.kept {
						require.Equal(t, 1, s.Idle)
					} else if piece > 1 { // else the stray byte may come later
						require.Zero(t, s.Idle)
					}
					pool.Close()
				}
			})
		})
	}
}

// TestCuts: what the peer cut off is named, before and within the answer.
func TestCuts(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		for _, c := range []struct {
			name, answer string
			body         string
			head         bool // a head comes
		}{
			{name: "nothing"},
			{name: "half a head", answer: "HTTP/1.1 200 OK\r\nContent-Le"},
			{name: "head, no body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", head: true},
			{name: "short body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", body: "abc", head: true},
			{name: "in a chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", body: "ab", head: true},
			{name: "between chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", body: "ab", head: true},
			{name: "no last line", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n", body: "ab", head: true},
		} {
			for _, rst := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, reset %v", c.name, rst), func(t *testing.T) {
					seen := make(chan struct{})
					p := serve(t, secure, func(pc *peerConn) {
						if _, _, ok := pc.request(); !ok {
							return
						}
						pc.say(c.answer)
						if rst {
							<-seen // else the reset could overtake the bytes
							pc.reset()
						}
					})
					pool := p.pool()
					call := begin(t, pool, hello(), bounded())
					fact, wire := failure.EOF, failure.Sent
					if rst {
						fact = failure.Reset
					}
					var err error
					if c.head {
						wire = failure.HeadersSeen
						require.NoError(t, call.Head())
						var got []byte
						for len(got) < len(c.body) {
							b, err := call.Next()
							require.NoError(t, err)
							got = append(got, b...)
						}
						require.Equal(t, c.body, string(got))
						close(seen)
						_, err = call.Next()
					} else {
						if rst {
							call.WakeAt(time.Now().Add(50 * time.Millisecond))
							require.Equal(t, ErrWake, call.Head())
							call.WakeAt(time.Time{})
						}
						close(seen)
						err = call.Head()
					}
					requireFact(t, err, fact, wire)
					_, again := call.Next()
					require.Equal(t, err, again)
					require.Equal(t, c.head, call.Status() == 200)
					s := pool.Stats()
					require.Zero(t, s.InUse+s.Idle)
					require.EqualValues(t, 1, p.requests.Load())
				})
			}
		}
	})
}

func TestBodyLimit(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	for limit, ok := range map[int64]bool{0: true, 15: true, 14: false, 1: false} {
		req := hello()
		req.MaxBody = limit
		c := begin(t, pool, req, bounded())
		require.NoError(t, c.Head())
		_, err := drain(c)
		if ok {
			require.NoError(t, err)
			continue
		}
		requireFact(t, err, failure.Malformed, failure.HeadersSeen)
		require.ErrorIs(t, err, ErrTooLarge)
	}
}

func TestMoreNeverWaits(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		go2 := make(chan struct{}, 1)
		p := serve(t, secure, func(c *peerConn) {
			for {
				if _, _, ok := c.request(); !ok {
					return
				}
				c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r")
				<-go2
				c.say("\n0\r\n\r\n")
			}
		})
		pool := p.pool()
		for range 2 {
			c := begin(t, pool, hello(), bounded())
			require.False(t, c.More())
			require.NoError(t, c.Head())
			var got string
			for got != "abc" {
				b, err := c.Next()
				require.NoError(t, err)
				more := c.More()
				require.Len(t, b, 1)
				got += string(b)
				require.Equal(t, got != "abc", more)
			}
			go2 <- struct{}{}
			_, err := c.Next()
			require.Equal(t, io.EOF, err)
			require.False(t, c.More())
			c.Release()
		}
		require.EqualValues(t, 1, pool.Stats().Reuses)
	})
}

// TestReleaseSeesTheEndAtHand: who stops at the last event needs not read the body's end.
func TestReleaseSeesTheEndAtHand(t *testing.T) {
	for tail, kept := range map[string]bool{"0\r\n\r\n": true, "0\r\n": false, "": false, "1\r\nx\r\n0\r\n\r\n": false} {
		p := serve(t, false, func(c *peerConn) {
			if _, _, ok := c.request(); ok {
				c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n" + tail)
				c.untilGone()
			}
		})
		pool := p.pool()
		c := begin(t, pool, hello(), bounded())
		b, err := c.Next()
		require.NoError(t, err, "Next does what Head would")
		require.Equal(t, "done", string(b))
		c.Release()
		require.Equal(t, kept, pool.Stats().Idle == 1, "%q", tail)
		require.Zero(t, pool.Stats().InUse)
	}
}

// TestBuffersAreAsLargeAsNeeded: a slow stream holds little, a bulk answer is read in large
// pieces, an unused connection holds nothing.
func TestBuffersAreAsLargeAsNeeded(t *testing.T) {
	for size, most := range map[int]int{100: smallBuffer, 1 << 20: largeBuffer} {
		p := serve(t, false, answering(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))))
		pool := p.pool()
		c := begin(t, pool, hello(), bounded())
		require.NoError(t, c.Head())
		require.Equal(t, smallBuffer, cap(c.x.conn.buf))
		require.Nil(t, c.x.out, "the request is let go")
		largest := 0
		for n := 0; n < size; {
			largest = max(largest, cap(c.x.conn.buf))
			b, err := c.Next()
			require.NoError(t, err)
			n += len(b)
		}
		require.Equal(t, most, largest)
		_, err := c.Next()
		require.Equal(t, io.EOF, err)
		require.Nil(t, pool.idle[0].buf)
	}
}
