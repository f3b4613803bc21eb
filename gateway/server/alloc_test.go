package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// TestAllocationsOfTheHotPath guards what one clean request may allocate in the whole
// gateway: front, flow, policy, ledger and its writer, log. The caller and the provider here
// allocate nothing per request, so every allocation of the process is the gateway's.
func TestAllocationsOfTheHotPath(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates on its own")
	}
	addr := plainProvider(t)
	c := allocStand(t, addr)
	for _, at := range []struct {
		name   string
		stream bool
		most   float64 // allocations a request
	}{
		{"a whole answer", false, mostAllocsWhole},
		{"a stream of 20 events", true, mostAllocsStream},
	} {
		t.Run(at.name, func(t *testing.T) {
			request := plainRequest(at.stream)
			end := []byte("\r\n\r\n")
			if at.stream {
				end = []byte("0\r\n\r\n")
			}
			const warm, runs = 500, 2000
			for range warm { // pools filled, decisions remembered, statements prepared
				require.NoError(t, c.call(request, at.stream, end))
			}
			best := float64(0)
			for round := range 3 { // what else the process does may allocate: the least counts
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range runs {
					if err := c.call(request, at.stream, end); err != nil {
						t.Fatal(err)
					}
				}
				runtime.ReadMemStats(&after)
				each := float64(after.Mallocs-before.Mallocs) / runs
				if round == 0 || each < best {
					best = each
				}
				t.Logf("%.1f allocations, %d bytes a request", each, (after.TotalAlloc-before.TotalAlloc)/runs)
			}
			require.LessOrEqual(t, best, at.most)
		})
	}
}

// What was measured (see bench/README.md), and a little more: background work differs.
const (
	mostAllocsWhole  = 24
	mostAllocsStream = 26
)

const allocYAML = `listen: {address: "127.0.0.1:0", drain_delay: 0s}
admin: {listen: "127.0.0.1:0"}
data_dir: %[1]s/data
storage: {url: "sqlite:%[1]s/ledger.db"}
providers:
  a: {adapter: openai, base_url: "http://%[2]s/v1"}
groups:
  - name: main
    channels: [{name: one, provider: a, credential: sk-0123456789, models: "*"}]
keys: [{name: app, key: %[3]s, groups: [main]}]
`

// allocStand is the gateway with its defaults, its log thrown away, and one connection to it.
func allocStand(t *testing.T, provider string) *plainCaller {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, allocYAML, dir, provider, callersKey), 0o600))
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: io.Discard, Level: "info"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, Options{Path: path, Log: log})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		_ = log.Close()
	})
	conn, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return &plainCaller{conn: conn, in: make([]byte, 64<<10)}
}

// plainCaller is a caller that allocates nothing per request.
type plainCaller struct {
	conn net.Conn
	in   []byte
}

var errNotTheAnswer = errors.New("not the answer that was expected")

// call sends the request and reads to the end of the answer: its chunked body's end, or as
// many bytes as it says after its head.
func (c *plainCaller) call(request []byte, stream bool, end []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	for n := 0; n < len(c.in); {
		k, err := c.conn.Read(c.in[n:])
		if err != nil {
			return err
		}
		n += k
		got := c.in[:n]
		if n >= 12 && !bytes.HasPrefix(got, []byte("HTTP/1.1 200")) {
			return errNotTheAnswer
		}
		if stream {
			if bytes.HasSuffix(got, end) {
				return nil
			}
		} else if i := bytes.Index(got, end); i >= 0 && n == i+len(end)+len(plainAnswer) {
			return nil
		}
	}
	return errNotTheAnswer
}

func plainRequest(stream bool) []byte {
	body := `{"model":"some-model","stream":` + strconv.FormatBool(stream) + `,"messages":[{"role":"user","content":"` + strings.Repeat("question ", 20) + `"}]}`
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer " + callersKey +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

const plainAnswer = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"some-model","choices":[{"index":0,"message":{"role":"assistant","content":"An answer of some words."},"finish_reason":"stop"}],"usage":{"prompt_tokens":29,"completion_tokens":47,"total_tokens":76}}`

// plainProvider answers chat completions with bytes made beforehand and allocates nothing
// per request.
func plainProvider(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
	event := func(delta, finish string) string {
		return chunk(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + "}]}\n\n")
	}
	whole := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(plainAnswer)) + "\r\n\r\n" + plainAnswer)
	pieces := [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")}
	for range 20 {
		pieces = append(pieces, []byte(event(`{"content":" token"}`, "null")))
	}
	pieces = append(pieces, []byte(event(`{}`, `"stop"`)+chunk(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[],"usage":{"prompt_tokens":29,"completion_tokens":20,"total_tokens":49}}`+"\n\n")+chunk("data: [DONE]\n\n")+"0\r\n\r\n"))
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go servePlain(c, whole, pieces)
		}
	}()
	return ln.Addr().String()
}

func servePlain(c net.Conn, whole []byte, pieces [][]byte) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 16<<10)
	streams, length := []byte(`"stream":true`), []byte("content-length:")
	for {
		size := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) <= 2 {
				break
			}
			if len(line) > len(length) && bytes.EqualFold(line[:len(length)], length) {
				for _, d := range bytes.TrimSpace(line[len(length):]) {
					size = 10*size + int(d-'0')
				}
			}
		}
		body, err := in.Peek(size)
		if err != nil {
			return
		}
		stream := bytes.Contains(body, streams)
		_, _ = in.Discard(size)
		if !stream {
			if _, err := c.Write(whole); err != nil {
				return
			}
			continue
		}
		for _, p := range pieces {
			if _, err := c.Write(p); err != nil {
				return
			}
		}
	}
}
