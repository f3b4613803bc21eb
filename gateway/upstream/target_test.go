package upstream

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func TestParseTarget(t *testing.T) {
	for url, expect := range map[string]Target{
		"https://api.example.com/v1":        {Secure: true, Host: "api.example.com", Port: "443", BasePath: "/v1", authority: "api.example.com"},
		"https://api.example.com:443":       {Secure: true, Host: "api.example.com", Port: "443", authority: "api.example.com"},
		"http://127.0.0.1:8080/":            {Host: "127.0.0.1", Port: "8080", authority: "127.0.0.1:8080"},
		"HTTP://[::1]/a%20b//":              {Host: "::1", Port: "80", BasePath: "/a%20b", authority: "[::1]"},
		"https://h:80/x?api-version=1&a=%2": {Secure: true, Host: "h", Port: "80", BasePath: "/x", Query: "api-version=1&a=%2", authority: "h:80"},
	} {
		got, err := ParseTarget(url)
		require.NoError(t, err, url)
		require.Equal(t, expect, got, url)
	}
	for _, url := range []string{
		"", "api.example.com", "/v1", "ftp://h", "https://", "https://:443", "https://user:canary@h", "https://h#x", "https://h/#",
		"https://h:0", "https://h:99999", "https://h:canary", "https://h/?a b", "https://canary\x00", "https://h\r\nX: canary/", "https://h/ü?ü",
	} {
		_, err := ParseTarget(url)
		require.Error(t, err, url)
		if url != "https://h:canary" {
			require.NotContains(t, err.Error(), "canary", url)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	good, err := ParseTarget("https://h")
	require.NoError(t, err)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, change := range map[string]func(*Options){
		"no target":       func(o *Options) { o.Target = Target{} },
		"host":            func(o *Options) { o.Target.Host = "a\r\nb" },
		"base path":       func(o *Options) { o.Target.BasePath = "v1" },
		"query in path":   func(o *Options) { o.Target.BasePath = "/a?b" },
		"query":           func(o *Options) { o.Target.Query = "a b" },
		"no such CA":      func(o *Options) { o.Target.TLS.CAFile = filepath.Join(t.TempDir(), "none") },
		"empty CA":        func(o *Options) { o.Target.TLS.CAFile = empty },
		"cert, no key":    func(o *Options) { o.Target.TLS.CertFile = authority().clientCert },
		"key, no cert":    func(o *Options) { o.Target.TLS.KeyFile = authority().clientKey },
		"not a cert":      func(o *Options) { o.Target.TLS.CertFile, o.Target.TLS.KeyFile = empty, authority().clientKey },
		"proxy scheme":    func(o *Options) { o.Target.Proxy = "https://user:canary@h" },
		"proxy host":      func(o *Options) { o.Target.Proxy = "http://" },
		"proxy URL":       func(o *Options) { o.Target.Proxy = "http://user:canary@h:x y" },
		"negative TTL":    func(o *Options) { o.IdleTTL = -1 },
		"negative idle":   func(o *Options) { o.MaxIdle = -1 },
		"negative age":    func(o *Options) { o.MaxAge = -1 },
		"negative header": func(o *Options) { o.MaxHeaderBytes = -1 },
	} {
		o := Options{Target: good}
		change(&o)
		_, err := NewPool(o)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "canary", name)
	}
}

func TestTLSFailures(t *testing.T) {
	p := serve(t, true, answering(okJSON))
	for name, change := range map[string]func(*Options){
		"unknown authority": func(o *Options) { o.Target.TLS.CAFile = "" },
		"other name":        func(o *Options) { o.Target.TLS.ServerName = "other.test" },
	} {
		pool := p.pool(change)
		c := begin(t, pool, hello(), bounded())
		requireFact(t, c.Head(), failure.TLS, failure.NotSent)
		require.Equal(t, Stats{Dials: 1, DialsFailed: 1}, pool.Stats(), name)
	}
	plain := serve(t, false, func(c *peerConn) { c.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
	requireFact(t, begin(t, poolTo(t, "https://"+plain.ln.Addr().String()), hello(), bounded()).Head(), failure.TLS, failure.NotSent)
	closing := serve(t, false, func(*peerConn) {})
	requireFact(t, begin(t, poolTo(t, "https://"+closing.ln.Addr().String()), hello(), bounded()).Head(), failure.TLS, failure.NotSent)
}

// tlsPeer is a peer with TLS settings of its own.
func tlsPeer(t *testing.T, cfg *tls.Config) *peer {
	cfg.Certificates = []tls.Certificate{authority().server}
	p := serve(t, false, func(c *peerConn) {
		c.Conn = tls.Server(c.Conn, cfg)
		c.init()
		answering(okJSON)(c)
	})
	p.secure = true
	return p
}

func TestTLSVersions(t *testing.T) {
	old := tlsPeer(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	requireFact(t, begin(t, old.pool(), hello(), bounded()).Head(), failure.TLS, failure.NotSent)
	other := tlsPeer(t, &tls.Config{NextProtos: []string{"h3"}})
	requireFact(t, begin(t, other.pool(), hello(), bounded()).Head(), failure.TLS, failure.NotSent)
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := tlsPeer(t, &tls.Config{MinVersion: v, MaxVersion: v, NextProtos: []string{"h2", "http/1.1"}})
		exchangeOnce(t, p.pool())
	}
}

func TestClientCertificate(t *testing.T) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		p := tlsPeer(t, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority().pool, MinVersion: v, MaxVersion: v})
		with := func(o *Options) {
			o.Target.TLS.CertFile, o.Target.TLS.KeyFile = authority().clientCert, authority().clientKey
		}
		exchangeOnce(t, p.pool(with))
		// In TLS 1.3 the refusal comes only after our side is done, when the request is on its way.
		err := begin(t, p.pool(), hello(), bounded()).Head()
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, []failure.Transport{failure.TLS, failure.Reset}, e.Transport, "%v", err)
	}
}

func TestSessionsAreResumed(t *testing.T) {
	var resumed []bool
	cfg := &tls.Config{VerifyConnection: func(s tls.ConnectionState) error {
		resumed = append(resumed, s.DidResume)
		return nil
	}}
	p := tlsPeer(t, cfg)
	pool := p.pool(func(o *Options) { o.MaxIdle = 1 })
	exchangeOnce(t, pool)
	pool.Retire() // drops the connection, keeps the sessions
	exchangeOnce(t, pool)
	p.stop()
	require.Equal(t, []bool{false, true}, resumed)
}

// held collects what TLS writes until it is let go, in one piece.
type held struct {
	net.Conn
	on  bool
	buf []byte
}

func (h *held) Write(b []byte) (int, error) {
	if !h.on {
		return h.Conn.Write(b)
	}
	h.buf = append(h.buf, b...)
	return len(b), nil
}

// TestStrayRecord: bytes behind an answer in a record of their own, which TLS has read from
// the socket already, are not taken for the next answer.
func TestStrayRecord(t *testing.T) {
	p := serve(t, false, func(c *peerConn) {
		h := &held{Conn: c.Conn}
		c.Conn = tls.Server(h, &tls.Config{Certificates: []tls.Certificate{authority().server}})
		c.init()
		if _, _, ok := c.request(); !ok {
			return
		}
		if c.nth > 1 {
			c.say(okJSON)
			c.untilGone()
			return
		}
		h.on = true
		c.say(okJSON)
		c.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
		_, _ = h.Conn.Write(h.buf)
		c.untilGone()
	})
	p.secure = true
	pool := p.pool()
	for range 2 {
		c := begin(t, pool, hello(), bounded())
		require.NoError(t, c.Head())
		body, err := drain(c)
		require.NoError(t, err)
		require.Equal(t, `{"hello":"you"}`, string(body))
		c.Release()
	}
	require.Equal(t, Stats{Idle: 1, Dials: 2, Stale: 1}, pool.Stats())
}

func TestDialFailures(t *testing.T) {
	p := serve(t, false, func(*peerConn) {})
	gone := p.ln.Addr().String()
	p.stop()
	for url, fact := range map[string]failure.Transport{
		"http://" + gone:            failure.Connect,
		"https://" + gone:           failure.Connect,
		"http://no-such-host.test.": failure.DNS,
	} {
		k := bounded()
		pool := poolTo(t, url)
		c := begin(t, pool, hello(), k)
		err := c.Head()
		requireFact(t, err, fact, failure.NotSent)
		require.Equal(t, Stats{Dials: 1, DialsFailed: 1}, pool.Stats())
	}
}
