package fault

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// peer is a plain client: a socket, and the bytes of a request.
type peer struct {
	t    testing.TB
	conn net.Conn
}

func dial(t testing.TB, p *Provider) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	return newPeer(t, conn)
}

func dialTLS(t testing.TB, p *Provider, config *tls.Config) *peer {
	t.Helper()
	conn, err := tls.Dial("tcp", p.Addr(), config)
	require.NoError(t, err)
	return newPeer(t, conn)
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return &peer{t, conn}
}

func (c *peer) send(raw string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, raw)
	require.NoError(c.t, err)
}

func (c *peer) post(path, body string, headers ...string) {
	c.t.Helper()
	c.send(post(path, body, headers...))
}

func post(path, body string, headers ...string) string {
	more := ""
	for _, h := range headers {
		more += h + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: provider\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), more, body)
}

const (
	chatPath   = "/v1/chat/completions"
	chatBody   = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// read reads exactly n bytes.
func (c *peer) read(n int64) string {
	c.t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c.conn, b)
	require.NoError(c.t, err)
	return string(b)
}

// rest reads to the end of the connection and says how it ended.
func (c *peer) rest() (text, end string) {
	c.t.Helper()
	b, err := io.ReadAll(c.conn)
	switch {
	case err == nil:
		return string(b), "fin"
	case errors.Is(err, syscall.ECONNRESET):
		return string(b), "reset"
	default:
		return string(b), err.Error()
	}
}

// answered reads the whole answer to the provider's call of that number, which
// must leave the connection open.
func (c *peer) answered(p *Provider, number int) string {
	c.t.Helper()
	call, err := p.WaitEnd(patient(c.t), number)
	require.NoError(c.t, err)
	require.Equal(c.t, EndCompleted, call.End)
	return c.read(call.Written)
}

// bodyOf cuts the head off.
func bodyOf(answer string) string {
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	return body
}

// unchunk joins the chunks of a body.
func unchunk(t testing.TB, body string) string {
	t.Helper()
	var b strings.Builder
	for {
		size, rest, found := strings.Cut(body, "\r\n")
		require.True(t, found, "no chunk size in %.100q", body)
		var n int
		_, err := fmt.Sscanf(size, "%x", &n)
		require.NoError(t, err)
		if n == 0 {
			require.Equal(t, "\r\n", rest)
			return b.String()
		}
		b.WriteString(rest[:n])
		require.Equal(t, "\r\n", rest[n:n+2])
		body = rest[n+2:]
	}
}
