package upstream

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rawPeer answers every request that ends in a mark, without parsing, so that it costs and
// allocates next to nothing.
func rawPeer(tb testing.TB, answer string) *Pool {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 16<<10)
				reply := []byte(answer)
				for n := 0; ; {
					m, err := c.Read(buf[n:])
					if err != nil {
						return
					}
					if n += m; bytes.HasSuffix(buf[:n], []byte("]}")) {
						n = 0
						if _, err := c.Write(reply); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	target, err := ParseTarget("http://" + ln.Addr().String() + "/v1")
	require.NoError(tb, err)
	pool, err := NewPool(Options{Target: target})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		pool.Close()
		_ = ln.Close()
		<-done
	})
	return pool
}

const jsonAnswer = "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 06:25:00 GMT\r\nContent-Type: application/json\r\nX-Request-Id: r\r\nContent-Length: 300\r\n\r\n"

func streamAnswer() string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range 20 {
		event := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n"
		_, _ = chunkWriter{&b}.Write([]byte(event))
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}

// post makes one whole call and returns how many bytes came.
func post(tb testing.TB, pool *Pool, req *Request, k Clocks) (n int) {
	c := AcquireCall()
	defer c.Release()
	c.Start(pool, req, k)
	if err := c.Head(); err != nil {
		tb.Fatal(err)
	}
	for {
		b, err := c.Next()
		if err == io.EOF {
			return n
		}
		if err != nil {
			tb.Fatal(err)
		}
		c.OutputSeen()
		n += len(b)
	}
}

// TestAllocations guards the hot path: a POST on a kept connection and its JSON answer. The
// one allocation is the call itself, which is never used twice so that a late Abort is
// harmless.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, answer := range map[string]string{
		"json":   jsonAnswer + strings.Repeat("x", 300),
		"stream": streamAnswer(),
	} {
		pool := rawPeer(t, answer)
		req, k := hello(), bounded()
		post(t, pool, req, k)
		got := testing.AllocsPerRun(500, func() { post(t, pool, req, k) })
		t.Logf("%s: %v allocations", name, got)
		require.LessOrEqual(t, got, 3.0, name)
	}
}

func BenchmarkPOST(b *testing.B) { benchmark(b, jsonAnswer+strings.Repeat("x", 300), 300) }

func BenchmarkStream20Events(b *testing.B) { benchmark(b, streamAnswer(), 20*63) }

func benchmark(b *testing.B, answer string, size int) {
	pool := rawPeer(b, answer)
	req, k := hello(), bounded()
	k.Deadline = k.Deadline.Add(soon * 1000)
	if n := post(b, pool, req, k); n < size/2 {
		b.Fatal(n)
	}
	b.ReportAllocs()
	for b.Loop() {
		post(b, pool, req, k)
	}
}

// BenchmarkFramer is the cost of finding the body of a stream, without any I/O.
func BenchmarkFramer(b *testing.B) {
	wire := []byte(streamAnswer())
	wire = wire[bytes.Index(wire, []byte("\r\n\r\n"))+4:]
	b.SetBytes(int64(len(wire)))
	for b.Loop() {
		var f framer
		f.start(byChunks, 0)
		for rest := wire; len(rest) > 0; {
			rest = rest[f.skip(rest):]
			rest = rest[f.take(len(rest)):]
		}
	}
}

func BenchmarkHead(b *testing.B) {
	wire := []byte(jsonAnswer)
	x := &exchange{}
	x.pool, x.req, x.conn = &Pool{maxHead: 64 << 10}, &Request{}, &conn{}
	x.conn.room(1)
	for b.Loop() {
		x.conn.r, x.conn.w = 0, copy(x.conn.buf, wire)
		x.headBytes = 0
		if ok, err := x.scanHead(); !ok || err != nil {
			b.Fatal(err)
		}
	}
}
