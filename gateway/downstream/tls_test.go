package downstream

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/flow"
)

// issue writes a certificate for 127.0.0.1, signed by itself, and its key.
func issue(t *testing.T, dir string, serial int64) (TLSFiles, tls.Certificate) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	files := TLSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	require.NoError(t, os.WriteFile(files.Cert, certificate, 0o600))
	require.NoError(t, os.WriteFile(files.Key, private, 0o600))
	pair, err := tls.X509KeyPair(certificate, private)
	require.NoError(t, err)
	return files, pair
}

// secure dials with TLS; the serial number is that of the certificate that the front showed.
func (s *site) secure(t *testing.T, c *tls.Config) (*tls.Conn, int64) {
	t.Helper()
	conn := tls.Client(s.dial(t), c)
	require.NoError(t, conn.Handshake())
	return conn, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

var trusting = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test looks at the serial number

func TestTLS(t *testing.T) {
	files, _ := issue(t, t.TempDir(), 1)
	for _, m := range watches {
		d := newDouble()
		s := open(t, d, Options{TLS: files, Watch: m})
		conn, serial := s.secure(t, trusting)
		require.EqualValues(t, 1, serial)
		r := bufio.NewReader(conn)
		for range 3 {
			resp, body := say(t, conn, r, post(chat, "ab"))
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, `{"echo":"ab"}`, body)
		}
	}
}

// TestTLSCallerLeaves: the watch lies where TLS does not hide the caller's leaving.
func TestTLSCallerLeaves(t *testing.T) {
	files, _ := issue(t, t.TempDir(), 1)
	for name, m := range watches {
		t.Run(name, func(t *testing.T) {
			d := newDouble()
			entered := make(chan struct{})
			heard := make(chan bool, 1)
			d.run = func(x *script) *flow.Reply {
				close(entered)
				select {
				case <-x.gone:
					heard <- true
				case <-time.After(soon):
					heard <- false
				}
				return nil
			}
			s := open(t, d, Options{TLS: files, Watch: m})
			conn, _ := s.secure(t, trusting)
			_, err := io.WriteString(conn, post(chat, "{}"))
			require.NoError(t, err)
			<-entered
			require.NoError(t, conn.Close())
			require.True(t, <-heard)
		})
	}
}

// TestTLSFilesChange: a renewed certificate is shown to new connections, a broken one is not.
func TestTLSFilesChange(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, 1)
	s := open(t, newDouble(), Options{TLS: files})
	_, serial := s.secure(t, trusting)
	require.EqualValues(t, 1, serial)
	issue(t, dir, 2)
	require.Eventually(t, func() bool {
		_, serial := s.secure(t, trusting)
		return serial == 2
	}, soon, 50*time.Millisecond)
	require.NoError(t, os.WriteFile(files.Cert, []byte("no certificate"), 0o600))
	require.Eventually(t, func() bool {
		_, serial := s.secure(t, trusting)
		require.EqualValues(t, 2, serial)
		return countLines(s.log.String(), "cannot be used") == 1
	}, soon, 50*time.Millisecond)
}

func TestClientCertificates(t *testing.T) {
	files, own := issue(t, t.TempDir(), 1)
	files.ClientCA = files.Cert
	s := open(t, newDouble(), Options{TLS: files})
	conn, _ := s.secure(t, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}) //nolint:gosec
	resp, _ := say(t, conn, bufio.NewReader(conn), get("/v1/models"))
	require.Equal(t, 200, resp.StatusCode)

	stranger := tls.Client(s.dial(t), trusting)
	_, err := io.WriteString(stranger, get("/v1/models"))
	if err == nil {
		_, err = stranger.Read(make([]byte, 1))
	}
	require.ErrorContains(t, err, "certificate required")
}

func TestPlainHTTPOnTLS(t *testing.T) {
	files, _ := issue(t, t.TempDir(), 1)
	s := open(t, newDouble(), Options{TLS: files})
	conn := s.dial(t)
	resp, body := say(t, conn, bufio.NewReader(conn), get("/v1/models"))
	require.Equal(t, 400, resp.StatusCode)
	require.Contains(t, body, "HTTPS")
}

func TestTLSFilesMissing(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for want, f := range map[string]TLSFiles{
		"cert_file and key_file are both needed":          {Cert: files.Cert},
		"cert_file " + dir + "/none":                      {Cert: dir + "/none", Key: files.Key},
		"client_ca_file":                                  {Cert: files.Cert, Key: files.Key, ClientCA: dir + "/none"},
		"client_ca_file " + files.Key + " holds no PEM c": {Cert: files.Cert, Key: files.Key, ClientCA: files.Key},
	} {
		_, err := newFront(l, newDouble(), Options{TLS: f})
		require.ErrorContains(t, err, want)
	}
}
