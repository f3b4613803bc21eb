package upstream

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(authority().dir)
		os.Exit(code)
	}))
}

// soon bounds what should be immediate, on a machine that is busy with other things.
const soon = 10 * time.Second

// peer is an upstream that does exactly what a test tells it to, over real sockets.
type peer struct {
	t        *testing.T
	ln       net.Listener
	secure   bool
	requests atomic.Int64
	accepted atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

// peerConn is one accepted connection.
type peerConn struct {
	net.Conn
	tcp *net.TCPConn
	br  *bufio.Reader
	p   *peer
	nth int64 // from 1
}

// serve starts a peer; handle runs once per connection, which is closed after it.
func serve(t *testing.T, secure bool, handle func(c *peerConn)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &peer{t: t, ln: ln, secure: secure}
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, raw)
			p.mu.Unlock()
			p.wg.Add(1)
			go func() {
				defer p.wg.Done()
				defer raw.Close()
				c := &peerConn{Conn: raw, tcp: raw.(*net.TCPConn), p: p, nth: p.accepted.Add(1)}
				if secure {
					c.Conn = tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{authority().server}})
				}
				c.init()
				handle(c)
			}()
		}
	}()
	t.Cleanup(p.stop)
	return p
}

func (p *peer) stop() {
	_ = p.ln.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *peer) target() Target {
	scheme := "http://"
	if p.secure {
		scheme = "https://"
	}
	t, err := ParseTarget(scheme + p.ln.Addr().String() + "/v1")
	require.NoError(p.t, err)
	if p.secure {
		t.TLS = TLS{CAFile: authority().file, ServerName: "upstream.test"}
	}
	return t
}

// pool is a pool to the peer; change, if given, may alter its options.
func (p *peer) pool(change ...func(*Options)) *Pool {
	o := Options{Target: p.target()}
	for _, f := range change {
		f(&o)
	}
	pool, err := NewPool(o)
	require.NoError(p.t, err)
	p.t.Cleanup(pool.Close)
	return pool
}

func (c *peerConn) init() { c.br = bufio.NewReader(c.Conn) }

// request reads one whole request; ok is false when the connection ended.
func (c *peerConn) request() (r *http.Request, body []byte, ok bool) {
	r, err := http.ReadRequest(c.br)
	if err != nil {
		return nil, nil, false
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		return nil, nil, false
	}
	c.p.requests.Add(1)
	return r, body, true
}

func (c *peerConn) say(s string) { _, _ = io.WriteString(c.Conn, s) }

// untilGone reads to the connection's end.
func (c *peerConn) untilGone() { _, _ = io.Copy(io.Discard, c.br) }

// reset ends the connection with a RST.
func (c *peerConn) reset() {
	_ = c.tcp.SetLinger(0)
	_ = c.tcp.Close()
}

// answering handles requests one after the other with the same answer.
func answering(answer string) func(c *peerConn) {
	return func(c *peerConn) {
		for {
			if _, _, ok := c.request(); !ok {
				return
			}
			c.say(answer)
		}
	}
}

const okJSON = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"hello\":\"you\"}"

func hello() *Request {
	return &Request{
		Path:   "/chat/completions",
		Header: []Field{{"Content-Type", "application/json"}, {"Authorization", "Bearer sk-canary"}},
		Body:   []byte(`{"model":"m","messages":[]}`),
	}
}

// begin starts a call that is released when the test ends.
func begin(t *testing.T, p *Pool, req *Request, k Clocks) *Call {
	t.Helper()
	c := AcquireCall()
	t.Cleanup(c.Release)
	c.Start(p, req, k)
	return c
}

// bounded is clocks that only keep a broken test from hanging.
func bounded() Clocks {
	return Clocks{Connect: soon, TLS: soon, Write: soon, FirstByte: soon, FirstOutput: soon, Idle: soon, Deadline: time.Now().Add(3 * soon)}
}

// drain reads the body to its end.
func drain(c *Call) ([]byte, error) {
	var all []byte
	for {
		b, err := c.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, b...)
	}
}

// exchangeOnce makes one whole call.
func exchangeOnce(t *testing.T, p *Pool) {
	t.Helper()
	c := AcquireCall()
	defer c.Release()
	c.Start(p, hello(), bounded())
	require.NoError(t, c.Head())
	_, err := drain(c)
	require.NoError(t, err)
}

// requireFact checks how a call failed.
func requireFact(t *testing.T, err error, fact failure.Transport, wire failure.Wire) {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, fact.String(), e.Transport.String(), "%v", err)
	require.Equal(t, wire, e.Wire, "%v", err)
	require.NotContains(t, err.Error(), "canary")
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// plainAndTLS runs a test over both.
func plainAndTLS(t *testing.T, f func(t *testing.T, secure bool)) {
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("tls", func(t *testing.T) { f(t, true) })
}

type testAuthority struct {
	file   string
	dir    string
	server tls.Certificate
	client tls.Certificate
	pool   *x509.CertPool
	// clientCert and clientKey are files
	clientCert, clientKey string
}

var authority = sync.OnceValue(func() *testAuthority {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "upstream-test")
	must(err)
	a := &testAuthority{dir: dir, pool: x509.NewCertPool()}
	serial := int64(0)
	issue := func(name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		serial++
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if parent == nil {
			c.IsCA, c.KeyUsage, parent, signer = true, x509.KeyUsageCertSign, c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
		must(err)
		c, err = x509.ParseCertificate(der)
		must(err)
		return c, key
	}
	save := func(name, kind string, der []byte) string {
		f := filepath.Join(dir, name)
		must(os.WriteFile(f, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return f
	}
	root, rootKey := issue("authority.test", nil, nil)
	a.pool.AddCert(root)
	a.file = save("ca.pem", "CERTIFICATE", root.Raw)
	cert, key := issue("upstream.test", root, rootKey)
	a.server = tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	cert, key = issue("client.test", root, rootKey)
	a.client = tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
	a.clientCert = save("client.pem", "CERTIFICATE", cert.Raw)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	a.clientKey = save("client.key", "PRIVATE KEY", der)
	return a
})

var errTest = errors.New("the test's cause")
