package upstream

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// scanAll feeds wire to a fresh exchange's head scanner as a connection would, cut by piece.
// It returns the exchange, whose connection holds what lies behind the head.
func scanAll(wire []byte, maxHead int, piece func() int) (x *exchange, ok bool, err error) {
	x = &exchange{}
	x.pool, x.req, x.conn = &Pool{maxHead: maxHead}, &Request{}, &conn{}
	for {
		if ok, err = x.scanHead(); ok || err != nil || len(wire) == 0 {
			return x, ok, err
		}
		if !x.conn.room(maxHead) {
			return x, false, errHeadSize
		}
		n := copy(x.conn.buf[x.conn.w:], wire[:min(piece(), len(wire))])
		x.conn.w += n
		wire = wire[n:]
	}
}

const head200 = "HTTP/1.1 200 OK\r\n"

var brokenHeads = map[string]string{
	"HTML":                     "<!DOCTYPE html><html><body>Bad gateway</body></html>",
	"a banner":                 "SSH-2.0-OpenSSH_9.2\r\n",
	"HTTP/2 frames":            "\x00\x00\x12\x04\x00\x00\x00\x00\x00",
	"HTTP/2 version":           "HTTP/2.0 200 OK\r\n\r\n",
	"HTTP/1.2":                 "HTTP/1.2 200 OK\r\n\r\n",
	"lower case":               "http/1.1 200 OK\r\n\r\n",
	"blank line first":         "\r\nHTTP/1.1 200 OK\r\n\r\n",
	"no status":                "HTTP/1.1\r\n\r\n",
	"status of two digits":     "HTTP/1.1 20 OK\r\n\r\n",
	"status of four digits":    "HTTP/1.1 2000 OK\r\n\r\n",
	"status of letters":        "HTTP/1.1 2xx OK\r\n\r\n",
	"status 099":               "HTTP/1.1 099 OK\r\n\r\n",
	"two blanks":               "HTTP/1.1  200 OK\r\n\r\n",
	"switching protocols":      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
	"too many informational":   strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9) + okJSON,
	"bare LF":                  "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
	"bare LF in a field":       head200 + "A: b\nContent-Length: 0\r\n\r\n",
	"folded":                   head200 + "A: b\r\n c\r\n\r\n",
	"no colon":                 head200 + "A b\r\n\r\n",
	"no name":                  head200 + ": b\r\n\r\n",
	"blank in a name":          head200 + "A B: c\r\n\r\n",
	"blank before the colon":   head200 + "Content-Length : 1\r\n\r\nx",
	"control byte in a value":  head200 + "A: b\x01c\r\n\r\n",
	"NUL in a value":           head200 + "A: b\x00c\r\n\r\n",
	"CR in a value":            head200 + "A: b\rc\r\n\r\n",
	"length twice, different":  head200 + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
	"length twice":             head200 + "Content-Length: 1\r\ncontent-length: 1\r\n\r\nx",
	"length list":              head200 + "Content-Length: 1, 1\r\n\r\nx",
	"length signed":            head200 + "Content-Length: +1\r\n\r\nx",
	"length negative":          head200 + "Content-Length: -1\r\n\r\nx",
	"length hex":               head200 + "Content-Length: 0x1\r\n\r\nx",
	"length empty":             head200 + "Content-Length:\r\n\r\nx",
	"length overflow":          head200 + "Content-Length: 99999999999999999999\r\n\r\nx",
	"length and chunked":       head200 + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	"chunked and length":       head200 + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	"chunked twice":            head200 + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"chunked list":             head200 + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
	"gzip, chunked":            head200 + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"identity":                 head200 + "Transfer-Encoding: identity\r\n\r\nx",
	"coding with a tab":        head200 + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"chunked in 1.0":           "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"too large":                head200 + "A: " + strings.Repeat("canary", 11000) + "\r\n\r\n",
	"too large, informational": strings.Repeat("HTTP/1.1 103 Early Hints\r\nA: "+strings.Repeat("x", 9000)+"\r\n\r\n", 8) + okJSON,
}

func TestBrokenHeads(t *testing.T) {
	for name, wire := range brokenHeads {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 1 << 20} {
				_, ok, err := scanAll([]byte(wire), 64<<10, func() int { return piece })
				require.False(t, ok)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "canary")
			}
		})
	}
}

// TestBrokenHeadsOverSockets: such an answer is refused at once, not when a clock fires, and
// its connection is dropped.
func TestBrokenHeadsOverSockets(t *testing.T) {
	for name, wire := range brokenHeads {
		t.Run(name, func(t *testing.T) {
			p := serve(t, false, func(c *peerConn) {
				if _, _, ok := c.request(); ok {
					c.say(wire)
					c.untilGone()
				}
			})
			pool := p.pool()
			c := begin(t, pool, hello(), bounded())
			requireClock(t, c.Head, failure.Malformed, failure.Sent)
			require.Zero(t, c.Status())
			require.Nil(t, c.Header("A"))
			require.Zero(t, pool.Stats().Idle+pool.Stats().InUse)
		})
	}
}

func TestBrokenChunksOverSockets(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		if _, _, ok := c.request(); ok {
			c.say(head200 + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nboom canary")
			c.untilGone()
		}
	})
	c := begin(t, p.pool(), hello(), bounded())
	require.NoError(t, c.Head())
	b, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, "ok", string(b))
	require.True(t, c.More(), "the error is at hand")
	_, err = c.Next()
	requireFact(t, err, failure.Malformed, failure.HeadersSeen)
}

func TestHeadIsStoredWhole(t *testing.T) {
	wire := []byte("HTTP/1.1 429 Too Many\r\nRetry-After:  7 \r\nX-Empty:\r\nSERVER: s\r\nretry-after: 8\r\nDate: Mon, 30 Nov 2026 06:25:00 GMT\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\nx")
	x, ok, err := scanAll(wire, 64<<10, func() int { return 3 })
	require.NoError(t, err)
	require.True(t, ok)
	c := &Call{x: x}
	require.Equal(t, 429, c.Status())
	require.Equal(t, "7", string(c.Header("Retry-After")), "the first one")
	require.Equal(t, "s", string(c.Header("server")))
	require.Equal(t, "a/b", string(c.Header("content-type")))
	require.Equal(t, "1", string(c.Header("content-length")))
	require.Equal(t, "Mon, 30 Nov 2026 06:25:00 GMT", string(c.Header("date")))
	require.Empty(t, c.Header("x-empty"))

	x, _, err = scanAll([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 64<<10, func() int { return 100 })
	require.NoError(t, err)
	require.Empty(t, (&Call{x: x}).ContentType(), "none is made up")
}

// FuzzHead feeds hostile heads in two cuts: the outcome must not depend on the cut, and
// what is accepted holds the promises that the body's framing rests on.
func FuzzHead(f *testing.F) {
	f.Add([]byte(okJSON), uint64(1))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\n"+okJSON), uint64(2))
	for _, wire := range brokenHeads {
		if len(wire) < 500 {
			f.Add([]byte(wire), uint64(3))
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte, seed uint64) {
		const limit = 512
		x, ok, err := scanAll(wire, limit, func() int { return len(wire) + 1 })
		rnd := rand.New(rand.NewPCG(seed, 0))
		y, ok2, err2 := scanAll(wire, limit, func() int { return 1 + rnd.IntN(9) })
		require.Equal(t, ok, ok2)
		require.Equal(t, err == nil, err2 == nil, "%v, %v", err, err2)
		if !ok {
			return
		}
		require.NoError(t, err)
		require.Equal(t, x.frame, y.frame)
		require.Equal(t, x.status, y.status)
		require.LessOrEqual(t, x.headBytes, limit)
		require.GreaterOrEqual(t, x.status, 200)
		lower := bytes.ToLower(wire[:x.headBytes])
		if x.frame.mode == byChunks {
			require.Contains(t, string(lower), "chunked")
		}
		require.Equal(t, x.status, x.head.StatusCode())
		if x.frame.mode == byLength {
			require.EqualValues(t, x.frame.remain, x.head.ContentLength(), "both readers agree")
		}
		if x.frame.mode == untilClose {
			require.True(t, x.head.ConnectionClose())
		}
	})
}
