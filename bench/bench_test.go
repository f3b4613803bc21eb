package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestMessagesInAnyPieces: what is read of messages does not depend on how they were cut.
func TestMessagesInAnyPieces(t *testing.T) {
	s := openaiScript()
	var wire []byte
	for _, b := range [][]byte{s.answer, s.head, s.event, s.event, s.usage, unavailable, s.sized(5000)} {
		wire = append(wire, b...)
	}
	var stream strings.Builder
	for _, chunked := range [][]byte{s.event, s.event, s.usage} {
		for part := string(chunked); part != ""; {
			var size int
			_, err := fmt.Sscanf(part, "%x\r\n", &size)
			require.NoError(t, err)
			_, rest, _ := strings.Cut(part, "\r\n")
			stream.WriteString(rest[:size])
			part = rest[size+2:]
			if size == 0 {
				break
			}
		}
	}
	body := func(b []byte) string { _, text, _ := strings.Cut(string(b), "\r\n\r\n"); return text }
	want := []string{
		"HTTP/1.1 200 OK " + body(s.answer), "HTTP/1.1 200 OK " + stream.String(),
		"HTTP/1.1 503 Service Unavailable " + body(unavailable), "HTTP/1.1 200 OK " + body(s.sized(5000)),
	}
	rapid.Check(t, func(rt *rapid.T) {
		var got []string
		var now strings.Builder
		m := message{}
		m.first = func(line []byte) error { now.Write(line); now.WriteByte(' '); return nil }
		m.body = func(p []byte) { now.Write(p) }
		for left := wire; len(left) > 0; {
			piece := left[:rapid.IntRange(1, min(len(left), 700)).Draw(rt, "piece")]
			left = left[len(piece):]
			for len(piece) > 0 {
				n, whole, err := m.feed(piece)
				require.NoError(rt, err)
				if piece = piece[n:]; whole {
					got = append(got, now.String())
					now.Reset()
				}
			}
		}
		require.Equal(rt, want, got)
	})
}

// TestLoadAndUpstream runs both on their loops, in this process: what the load verifies is
// what the upstream sends, in every mode and kind, and wrong answers are errors.
func TestLoadAndUpstream(t *testing.T) {
	addr := make(chan string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runUpstream(ctx, nil, lines(func(s string) { addr <- strings.TrimSpace(s) })) }()
	at := <-addr
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	direct := &target{addr: at, path: chatPath}
	for _, k := range []kind{post, stream, paced, eights, sizedIn(300 << 10), sizedOut(1 << 20)} {
		j := &job{Mode: closed, Addr: at, Connections: 3, Count: 10, Duration: time.Minute, Want: k.want, Requests: of(k)(direct)}
		sum, err := runLoop(j, nil)
		require.NoError(t, err)
		require.Equal(t, []any{10, 0}, []any{sum.Requests, sum.Errors}, "%s: %v", k.name, sum.Examples)
	}
	sum, err := runLoop(&job{Mode: opened, Addr: at, Connections: 2, Rate: 1000, Duration: 50 * time.Millisecond, Want: post.want, Requests: of(post)(direct)}, nil)
	require.NoError(t, err)
	require.Equal(t, []any{50, 0, int64(50)}, []any{sum.Requests, sum.Errors, sum.Latency.TotalCount()}, sum.Examples)

	down := &target{addr: at, path: "/someone/503/v1/chat/completions"}
	sum, err = runLoop(&job{Mode: closed, Addr: at, Connections: 1, Count: 3, Duration: time.Minute, Requests: of(post)(down)}, nil)
	require.NoError(t, err)
	require.Equal(t, []any{0, 3}, []any{sum.Requests, sum.Errors})
	wrong := stream.want
	wrong.Events++
	sum, err = runLoop(&job{Mode: closed, Addr: at, Connections: 1, Count: 3, Duration: time.Minute, Want: wrong, Requests: of(stream)(direct)}, nil)
	require.NoError(t, err)
	require.Equal(t, []any{0, 3}, []any{sum.Requests, sum.Errors})

	counts, err := (&ground{addr: at}).counts(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"": 113, "someone": 3}, counts)
}

type lines func(string)

func (l lines) Write(p []byte) (int, error) { l(string(p)); return len(p), nil }

// TestOmissionIsCoordinated: a server that answers nothing for a while makes the requests that
// were to be sent meanwhile late, though they were never on the wire.
func TestOmissionIsCoordinated(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	const pause = 200 * time.Millisecond
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				time.Sleep(pause) // what the server does to its first request is the case
				buffer := make([]byte, 64<<10)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					for range bytes.Count(buffer[:n], []byte("POST ")) {
						_, _ = c.Write(openaiScript().answer)
					}
				}
			}()
		}
	}()
	addr := ln.Addr().String()
	sum, err := runLoop(&job{Mode: opened, Addr: addr, Connections: 1, Rate: 500, Duration: pause, Requests: of(post)(&target{addr: addr, path: chatPath})}, nil)
	require.NoError(t, err)
	require.Equal(t, 100, sum.Requests, sum.Examples)
	require.Greater(t, sum.Latency.at(.5), pause/4)
}

func TestPeers(t *testing.T) {
	t.Setenv("OTHER_KEY", "the-secret")
	_, peers, err := readPeers(filepath.Join(t.TempDir(), "none.yaml"))
	require.NoError(t, err)
	require.Empty(t, peers)

	example, err := os.ReadFile("peers.example.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "peers.yaml")
	pid := filepath.Join(t.TempDir(), "pid")
	require.NoError(t, os.WriteFile(pid, []byte("1\n"), 0o600))
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(example, []byte("/run/other.pid"), []byte(pid)), 0o600))
	f, peers, err := readPeers(file)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9180", f.Upstream)
	require.Len(t, peers, 1)
	require.Contains(t, string(peers[0].request(post)), "Authorization: Bearer the-secret\r\n")

	for _, bad := range []string{
		"upstream: 127.0.0.1:1\npeers: [{name: x, base_url: 'https://h'}]",
		"upstream: 127.0.0.1:1\npeers: [{name: nginx, base_url: 'http://h'}]",
		"peers: [{name: x, base_url: 'http://h'}]",
		"upstream: 127.0.0.1:1\npeers: [{name: x, base_url: 'http://h', headers: {a: '${env:NOT_SET_HERE}'}}]",
		"upstream: 127.0.0.1:1\npeers: [{name: x, base_url: 'http://h', loads: [everything]}]",
		"nonsense: true",
	} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		_, _, err := readPeers(file)
		require.Error(t, err, bad)
	}
}

func TestAims(t *testing.T) {
	s := &section{Name: "saturation"}
	s.record("cpu_per_request", "gateway/nginx", "post", "ratio", []float64{1.6, 1.4, 1.5})
	s.record("throughput", "gateway/nginx", "post", "ratio", []float64{0.7, 0.74, 0.8})
	r := &report{Sections: []*section{s}}
	got := map[string]string{}
	for _, a := range r.against() {
		got[a.Name] = a.Result
	}
	require.Equal(t, met, got["processor time of a whole answer, against nginx"])
	require.Equal(t, missed, got["throughput at saturation, against nginx"])
	require.Equal(t, notMeasured, got["ready after exec, ms"])
	s.Invalid = true
	for _, a := range r.against() {
		require.Equal(t, notMeasured, a.Result)
	}
}

func TestReadCounts(t *testing.T) {
	got, err := readCounts([]byte("desc: x\ncmd: y\nevents: Ir\nfl=a.go\nfn=runtime.one\n10 5\n11 7\nfl=b.go\nfn=modernc.org/sqlite.two\n3 100\nfn=runtime.one\n12 1\nsummary: 113\n"))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"runtime.one": 13, "modernc.org/sqlite.two": 100}, got)
	_, err = readCounts([]byte("events: Ir\n"))
	require.Error(t, err)
}
