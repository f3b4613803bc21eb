package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/fault"
	"github.com/interlock-gateway/interlock/gateway/ledger"
)

// How a caller may leave and where the request may stand then.
var departures = []struct {
	name, script, body string
}{
	{"before the head", "on chat\n  stall\n", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
	{"before output", "on chat stream\n  head\n  role\n  stall\n", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
	{"mid-stream", "on chat stream\n  role\n  text \"one\"\n  stall\n", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
	{"in a whole answer", "on chat json\n  json {\"id\":\"x\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"one\"},\"finish_reason\":\"stop\"}]}\n  stall after 30\n", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
}

// prompt is how soon the upstream must see its call end. The promise is 100 ms; a test on a
// machine that does other things must not fail for what those take.
const prompt = time.Second

func TestACallerThatLeavesTakesItsCallAlong(t *testing.T) {
	cert, roots := certificateFiles(t)
	for _, secure := range []bool{false, true} {
		st := setUp(t, map[string]string{"a": "", "b": ""}, listenOn(cert, secure)+twoChannels)
		for _, d := range departures {
			for _, how := range []string{"FIN", "RST"} {
				for _, conn := range []string{"first", "second", "pipelined"} {
					t.Run(fmt.Sprintf("tls=%t/%s/%s/%s request", secure, d.name, how, conn), func(t *testing.T) {
						st.depart(t, d.script, d.body, how, conn, secure, roots)
					})
				}
			}
		}
	}
}

func listenOn(cert [2]string, secure bool) string {
	if !secure {
		return ""
	}
	return fmt.Sprintf("listen: {address: 127.0.0.1:0, drain_delay: 0s, tls: {cert_file: %s, key_file: %s}}\n", cert[0], cert[1])
}

// certificateFiles writes a certificate for loopback.
func certificateFiles(t *testing.T) (files [2]string, roots *x509.CertPool) {
	t.Helper()
	config, roots, err := fault.Certificate()
	require.NoError(t, err)
	c := config.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	files = [2]string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: c.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key}} {
		require.NoError(t, os.WriteFile(files[i], pem.EncodeToMemory(block), 0o600))
	}
	return files, roots
}

// depart makes one request, leaves while it runs, and sees what becomes of the call.
func (st *stand) depart(t *testing.T, script, body, how, conn string, secure bool, roots *x509.CertPool) {
	a, b := st.providers["a"], st.providers["b"]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	raw, err := net.Dial("tcp", st.Addr().String())
	require.NoError(t, err)
	defer raw.Close()
	var c net.Conn = raw
	if secure {
		c = tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	}
	if conn == "second" {
		a.SetScript(parse(t, "a", "healthy \"well\"\n"))
		ask(t, c, body)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
	}
	a.SetScript(parse(t, "a", script))
	calls, others := a.Count(), b.Count()
	ask(t, c, body)
	if conn == "pipelined" {
		ask(t, c, body)
	}
	_, err = a.WaitStalled(ctx, calls+1)
	require.NoError(t, err)
	left := time.Now()
	if how == "RST" {
		require.NoError(t, raw.(*net.TCPConn).SetLinger(0))
	}
	require.NoError(t, c.Close())
	call, err := a.WaitClosed(ctx, calls+1)
	require.NoError(t, err)
	took := call.PeerClosed.Sub(left)
	t.Logf("the upstream saw its call end after %v", took)
	require.Less(t, took, prompt)
	require.Eventually(t, func() bool { return st.gateway.Running() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, calls+1, a.Count(), "calls on the first channel")
	require.Equal(t, others, b.Count(), "calls on the other channel")
	require.NoError(t, st.ledger.Flush(ctx))
	page, err := st.ledger.Reader().List(ctx, ledger.Filter{Limit: 1})
	require.NoError(t, err)
	r := page.Requests[0]
	require.Equal(t, "cancelled", r.Terminal.String())
	require.Len(t, r.Attempts, 1)
	require.Equal(t, "cancelled", r.Attempts[0].Class.String())
	require.Equal(t, "cancelled", r.Attempts[0].End.String())
}

func ask(t *testing.T, c net.Conn, body string) {
	t.Helper()
	_, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callersKey, len(body), body)
	require.NoError(t, err)
}

// A caller that leaves while its request waits, for a place or for a time, gives up the wait:
// nothing is sent for it.
func TestACallerThatLeavesWhileItsRequestWaits(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	leave := func(t *testing.T, st *stand, waits func() bool) {
		c, err := net.Dial("tcp", st.Addr().String())
		require.NoError(t, err)
		ask(t, c, body)
		require.Eventually(t, waits, 10*time.Second, time.Millisecond)
		running := st.gateway.Running()
		left := time.Now()
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool { return st.gateway.Running() < running }, 10*time.Second, time.Millisecond)
		t.Logf("the request ended after %v", time.Since(left))
		require.Less(t, time.Since(left), prompt)
	}
	t.Run("in the queue", func(t *testing.T) {
		st := setUp(t, map[string]string{"a": "on chat\n  stall\n"}, oneChannel)
		first, err := net.Dial("tcp", st.Addr().String())
		require.NoError(t, err)
		ask(t, first, body)
		_, err = st.providers["a"].WaitStalled(t.Context(), 1)
		require.NoError(t, err)
		gate := st.gateway.Generation().Table.Groups()[0].Channels[0].Gate
		leave(t, st, func() bool { _, waiting := gate.Load(); return waiting == 1 })
		_, waiting := gate.Load()
		require.Zero(t, waiting)
		require.Equal(t, 1, st.providers["a"].Count())
		require.NoError(t, first.Close())
	})
	t.Run("in a wait for Retry-After", func(t *testing.T) {
		st := setUp(t, map[string]string{"a": "on chat\n  once\n  status 429\n  header Retry-After 15\n"}, oneChannel)
		gate := st.gateway.Generation().Table.Groups()[0].Channels[0].Gate
		leave(t, st, func() bool {
			calls := st.providers["a"].Calls()
			running, _ := gate.Load() // none once the gateway, too, is done with the answer
			return len(calls) == 1 && calls[0].End == fault.EndCompleted && running == 0
		})
		require.Equal(t, 1, st.providers["a"].Count())
		require.NoError(t, st.ledger.Flush(t.Context()))
		page, err := st.ledger.Reader().List(t.Context(), ledger.Filter{})
		require.NoError(t, err)
		require.Equal(t, "cancelled", page.Requests[0].Terminal.String())
		require.Equal(t, "rate_limited", page.Requests[0].Attempts[0].Class.String())
	})
}

// With half_close: keep a caller that has only said all it has to say gets its answer.
func TestAHalfClosedCallerIsKeptWhereTheConfigurationSaysSo(t *testing.T) {
	st := setUp(t, map[string]string{"a": "on chat\n  delay 150ms\n"},
		"listen: {address: 127.0.0.1:0, drain_delay: 0s, half_close: keep}\n"+oneChannel)
	c, err := net.Dial("tcp", st.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	ask(t, c, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

const oneChannel = `
providers:
  a: {adapter: openai, base_url: "{{url a}}/v1"}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: sk-AAAA-canary-0001, max_concurrency: 1, queue: {max: 5, wait: 20s}, models: {m: {}}}
keys:
  - {name: k, key: "{{key}}", groups: [chat]}
`
