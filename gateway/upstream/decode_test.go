package upstream

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// coder is what all of them have in common.
type coder interface {
	io.WriteCloser
	Flush() error
}

var coders = map[string]func(w io.Writer) coder{
	"gzip":    func(w io.Writer) coder { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) coder { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) coder { return zlib.NewWriter(w) },
	"Deflate": func(w io.Writer) coder { z, _ := flate.NewWriter(w, 5); return z }, // bare, as some send it
	"br":      func(w io.Writer) coder { return brotli.NewWriter(w) },
	"zstd":    func(w io.Writer) coder { z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1)); return z },
}

func coded(t *testing.T, coding, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := coders[coding](&b)
	_, err := io.WriteString(w, s)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestCodedEventsFlow: an event that the upstream flushed comes out before the next one is
// sent, through every coding; and the connection is kept.
func TestCodedEventsFlow(t *testing.T) {
	for coding, coder := range coders {
		t.Run(coding, func(t *testing.T) {
			plainAndTLS(t, func(t *testing.T, secure bool) {
				next := make(chan struct{})
				p := serve(t, secure, func(c *peerConn) {
					for {
						if _, _, ok := c.request(); !ok {
							return
						}
						c.say(head200 + "Content-Encoding: " + coding + "\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
						w := coder(chunkWriter{c})
						for i := range 20 {
							<-next
							_, _ = fmt.Fprintf(w, "data: {\"n\":%d}\n\n", i)
							_ = w.Flush()
						}
						<-next
						_ = w.Close()
						c.say("0\r\n\r\n")
					}
				})
				pool := p.pool()
				for range 2 {
					c := begin(t, pool, hello(), bounded())
					require.NoError(t, c.Head())
					require.Equal(t, coding, string(c.Header("content-encoding")))
					for i := range 20 {
						c.WakeAt(time.Now().Add(time.Millisecond))
						_, err := c.Next()
						require.Equal(t, ErrWake, err, "nothing was sent yet")
						c.WakeAt(time.Time{})
						next <- struct{}{}
						expect := fmt.Sprintf("data: {\"n\":%d}\n\n", i)
						var got string
						for len(got) < len(expect) {
							b, err := c.Next()
							require.NoError(t, err)
							require.NotEmpty(t, b)
							got += string(b)
						}
						require.Equal(t, expect, got)
						require.False(t, c.More())
					}
					next <- struct{}{}
					_, err := c.Next()
					require.Equal(t, io.EOF, err)
					c.Release()
				}
				require.EqualValues(t, 1, pool.Stats().Dials)
			})
		})
	}
}

// chunkWriter sends each write as one chunk.
type chunkWriter struct{ w io.Writer }

func (c chunkWriter) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	_, err := fmt.Fprintf(c.w, "%x\r\n%s\r\n", len(b), b)
	return len(b), err
}

func TestCodedBodies(t *testing.T) {
	long := strings.Repeat("the same sixty words, again and again, ", 20_000)
	for coding := range coders {
		code := func(s string) string { return string(coded(t, coding, s)) }
		for _, c := range []struct {
			name, body, expect string
			limit              int64
			fact               failure.Transport // or none
			toTheClose         bool
			mayPass            bool // a coding without a checksum may not notice
		}{
			{name: "short", body: code("hello"), expect: "hello"},
			{name: "long", body: code(long), expect: long},
			{name: "of nothing", body: code(""), expect: ""},
			{name: "no byte at all", body: "", expect: ""},
			{name: "to the close", body: code(long), expect: long, toTheClose: true},
			{name: "too large", body: code(long), limit: int64(len(long)) - 1, fact: failure.Malformed},
			{name: "just not too large", body: code(long), limit: int64(len(long)), expect: long},
			{name: "cut", body: code(long)[:len(code(long))-9], fact: failure.Malformed},
			{name: "cut by the close", body: code(long)[:len(code(long))-9], fact: failure.EOF, toTheClose: true},
			{name: "one byte", body: code(long)[:1], fact: failure.Malformed},
			{name: "garbage", body: "\x01" + strings.Repeat("canary", 30), fact: failure.Malformed},
			{name: "plain text", body: `{"error":{"message":"canary"}}`, fact: failure.Malformed, mayPass: true},
			{name: "far too much behind", body: code("hello") + strings.Repeat("\xff", 3*maxBehind), fact: failure.Malformed},
		} {
			t.Run(coding+" "+c.name, func(t *testing.T) {
				head := head200 + "Content-Encoding: " + coding + "\r\n"
				if !c.toTheClose {
					head += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
				}
				p := serve(t, false, func(pc *peerConn) {
					if _, _, ok := pc.request(); ok {
						pc.say(head + "\r\n" + c.body)
						if !c.toTheClose {
							pc.untilGone()
						}
					}
				})
				pool := p.pool()
				req := hello()
				req.MaxBody = c.limit
				call := begin(t, pool, req, bounded())
				require.NoError(t, call.Head())
				body, err := drain(call)
				switch {
				case c.fact == failure.TransportOK:
					require.NoError(t, err)
					require.True(t, c.expect == string(body))
					require.Equal(t, !c.toTheClose, pool.Stats().Idle == 1)
				case err == nil && c.mayPass:
				default:
					requireFact(t, err, c.fact, failure.HeadersSeen)
					require.Zero(t, pool.Stats().Idle)
				}
				require.Zero(t, pool.Stats().InUse)
			})
		}
	}
}

func TestUnknownCoding(t *testing.T) {
	for coding, ok := range map[string]bool{"identity": true, "Identity": true, "compress": false, "gzip, br": false, "canary": false} {
		p := serve(t, false, answering(head200+"Content-Encoding: "+coding+"\r\nContent-Length: 2\r\n\r\n{}"))
		c := begin(t, p.pool(), hello(), bounded())
		require.NoError(t, c.Head(), "the status counts all the same")
		body, err := drain(c)
		if ok {
			require.NoError(t, err)
			require.Equal(t, "{}", string(body))
			continue
		}
		requireFact(t, err, failure.Malformed, failure.HeadersSeen)
	}
}

// TestDecoderPanics: a decoder's bug is the answer's fault, not the gateway's end.
func TestDecoderPanics(t *testing.T) {
	d := newDecoder(func(r io.Reader) (io.ReadCloser, error) { panic("a bug") })
	defer d.stop()
	d.run()
	require.True(t, d.ended)
	require.ErrorIs(t, d.err, errDecode)
}

// FuzzDecode: hostile codes end in bytes or an error, the same however they are cut.
func FuzzDecode(f *testing.F) {
	for i, coding := range codings {
		var b bytes.Buffer
		w := coders[coding](&b)
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = w.Close()
		f.Add(b.Bytes(), uint8(i), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, coding, cut uint8) {
		name := []byte(codings[int(coding)%len(codings)])
		whole, err := decodeAll(name, b, len(b)+1)
		pieces, err2 := decodeAll(name, b, int(cut)+1)
		require.Equal(t, err, err2)
		if err == nil {
			require.True(t, bytes.Equal(whole, pieces))
		}
	})
}

var codings = []string{"gzip", "deflate", "br", "zstd"}

func decodeAll(coding, b []byte, piece int) (out []byte, err error) {
	d := newDecoder(decoderOf(coding))
	defer d.stop()
	for !d.ended && len(out) < 1<<20 {
		switch {
		case !d.hungry:
			d.run()
			out = append(out, d.out...)
		case len(b) == 0:
			d.feedEnd()
		default:
			n := min(piece, len(b))
			d.feed(b[:n])
			b = b[n:]
		}
	}
	return out, d.err
}
