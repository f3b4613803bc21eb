package policy

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
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRedirects(t *testing.T) {
	at := func(s string) *url.URL {
		u, err := url.Parse(s)
		require.NoError(t, err)
		return u
	}
	require.NoError(t, redirect(at("https://a/y"), at("https://a/x"), 1, true))
	require.NoError(t, redirect(at("https://b/y"), at("https://a/x"), 1, false))
	require.Error(t, redirect(at("https://b/y"), at("https://a/x"), 1, true))
	require.Error(t, redirect(at("https://a:8443/y"), at("https://a/x"), 1, true))
	require.Error(t, redirect(at("http://a/y"), at("https://a/x"), 1, false))
	require.Error(t, redirect(at("https://a/y"), at("https://a/x"), maxRedirects+1, false))
}

// A token goes to the host it was made for, and to no other.
func TestTokenStaysWithItsHost(t *testing.T) {
	asked := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter22" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, thief.URL, http.StatusFound)
	}))
	defer server.Close()
	_, err := Read(testContext(t), Remote("platform", server.URL, RemoteOptions{Token: "hunter22"}))
	require.ErrorContains(t, err, "another host")
	require.Empty(t, asked)
	_, err = Read(testContext(t), Remote("platform", server.URL, RemoteOptions{}))
	require.ErrorContains(t, err, "401 Unauthorized")
}

func TestRemoteFaults(t *testing.T) {
	body := "x"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	defer server.Close()
	_, err := Read(testContext(t), Remote("platform", server.URL+"?sig=hunter22", RemoteOptions{}))
	require.ErrorContains(t, err, "policy bundle platform: the answer is no gzip file")
	for _, address := range []string{"ftp://a/b", "nothing", "http://"} {
		_, err := Read(testContext(t), Remote("platform", address, RemoteOptions{}))
		require.ErrorContains(t, err, "no http or https URL")
	}
	_, err = Read(testContext(t), Remote("platform", server.URL, RemoteOptions{CAFile: filepath.Join(t.TempDir(), "none")}))
	require.Error(t, err)
	server.Close()
	_, err = Read(testContext(t), Remote("platform", server.URL+"/?sig=hunter22", RemoteOptions{}))
	require.ErrorContains(t, err, "refused")
	require.NotContains(t, err.Error(), "hunter22")
	require.Equal(t, "https://a/b", Remote("p", "https://u:hunter22@a/b?sig=hunter22", RemoteOptions{}).Where())
}

// A server that asks for a client certificate and has one of its own authority.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	clientCert, clientKey, ca := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "ca.pem")
	writeFile(t, clientCert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, clientKey, pemOf("EC PRIVATE KEY", keyDER))

	raw := built(t, teamBundle(t), BuildOptions{Revision: "v1"})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	server.TLS.ClientCAs.AddCert(certificate)
	server.StartTLS()
	defer server.Close()
	writeFile(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))

	b, err := Read(testContext(t), Remote("team", server.URL, RemoteOptions{CAFile: ca, ClientCert: clientCert, ClientKey: clientKey}))
	require.NoError(t, err)
	require.Equal(t, "v1", b.Revision())
	_, err = Read(testContext(t), Remote("team", server.URL, RemoteOptions{CAFile: ca}))
	require.Error(t, err)
	_, err = Read(testContext(t), Remote("team", server.URL, RemoteOptions{ClientCert: clientCert, ClientKey: clientKey}))
	require.ErrorContains(t, err, "certificate")
}
