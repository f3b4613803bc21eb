package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRenewedCertificates: a client certificate that was renewed is shown from the next request on,
// and one that is being written leaves the one before in use.
func TestRenewedCertificates(t *testing.T) {
	dir := t.TempDir()
	o := Options{
		Token: "peer-canary", ClientCert: filepath.Join(dir, "c.pem"), ClientKey: filepath.Join(dir, "k.pem"), CAFile: filepath.Join(dir, "ca.pem"),
	}
	renew := func(name string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		require.NoError(t, err)
		private, err := x509.MarshalECPrivateKey(key)
		require.NoError(t, err)
		put(t, o.ClientCert, "CERTIFICATE", der)
		put(t, o.ClientKey, "EC PRIVATE KEY", private)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("shown", r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.Header.Get("Authorization"))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	renew("one")
	put(t, o.CAFile, "CERTIFICATE", server.Certificate().Raw)
	c, err := New(o, func() *http.Transport { return &http.Transport{} }, http.Client{})
	require.NoError(t, err)
	defer c.Close()
	ask := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		resp, err := c.Do(req)
		if err != nil {
			return "", err
		}
		return resp.Header.Get("shown"), resp.Body.Close()
	}
	shows := func(name string) {
		t.Helper()
		got, err := ask()
		require.NoError(t, err)
		require.Equal(t, name+" Bearer peer-canary", got)
	}
	shows("one")
	renew("two")
	shows("two")
	require.NoError(t, os.WriteFile(o.ClientKey, []byte("half"), 0o600))
	shows("two")
	renew("three")
	shows("three")

	// The authorities, too: another one's are not those of this server.
	client, err := os.ReadFile(o.ClientCert)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.CAFile, client, 0o600))
	_, err = ask()
	require.ErrorContains(t, err, "certificate")
	put(t, o.CAFile, "CERTIFICATE", server.Certificate().Raw)
	shows("three")
	require.NoError(t, os.Remove(o.CAFile))
	_, err = New(o, func() *http.Transport { return &http.Transport{} }, http.Client{})
	require.Error(t, err)
}

func put(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
