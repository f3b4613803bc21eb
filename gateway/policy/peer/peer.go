// Package peer owns how the gateway asks the servers beside it, of which it has bundles and to
// which it sends logs and reports: the bearer token, the client certificate and the authorities.
//
// Certificates are files that others renew. They are looked at again before each request, and
// where they have changed the next request is on a new connection. The package must not know
// what is asked, and shows no secret.
package peer

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
)

// Options say who asks, and whom to believe.
type Options struct {
	Token                 string // a bearer token; "": none
	ClientCert, ClientKey string // files in PEM; "": none
	CAFile                string // a file in PEM; "": the system's authorities
}

// Credentials reports whether a request shows who asks.
func (o Options) Credentials() bool { return o.Token != "" || o.ClientCert != "" }

// Client asks one server. It is used by one goroutine at a time.
type Client struct {
	options   Options
	http      http.Client
	transport func() *http.Transport
	made      files // what the transport was made of
}

// files are the texts of those that the options name.
type files struct{ cert, key, ca []byte }

func (f *files) equal(o *files) bool {
	return bytes.Equal(f.cert, o.cert) && bytes.Equal(f.key, o.key) && bytes.Equal(f.ca, o.ca)
}

// New reads the files. transport makes a transport without TLS settings; client is what else is
// said of the HTTP client: its redirects and its timeout.
func New(o Options, transport func() *http.Transport, client http.Client) (*Client, error) {
	c := &Client{options: o, http: client, transport: transport}
	return c, c.renew()
}

// Do asks, with the certificates as they are now. Files that cannot be used, since they are just
// being replaced, leave those before in use. An error does not show the address.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	_ = c.renew()
	if c.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	req.Header.Set("User-Agent", "interlock")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, Unaddressed(err)
	}
	return resp, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// renew makes the transport anew where the files have changed.
func (c *Client) renew() error {
	now, err := c.options.read()
	if err != nil || c.http.Transport != nil && now.equal(&c.made) {
		return err
	}
	config, err := c.options.config(now)
	if err != nil {
		return err
	}
	c.http.CloseIdleConnections()
	t := c.transport()
	t.TLSClientConfig, t.ForceAttemptHTTP2 = config, true
	c.http.Transport, c.made = t, *now
	return nil
}

func (o Options) read() (*files, error) {
	f := &files{}
	for _, one := range []struct {
		path string
		to   *[]byte
	}{{o.ClientCert, &f.cert}, {o.ClientKey, &f.key}, {o.CAFile, &f.ca}} {
		if one.path == "" {
			continue
		}
		text, err := os.ReadFile(one.path) // #nosec G304 -- the operator's
		if err != nil {
			return nil, err
		}
		*one.to = text
	}
	return f, nil
}

func (o Options) config(f *files) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(f.ca) {
			return nil, fmt.Errorf("%s holds no certificate", o.CAFile)
		}
	}
	if o.ClientCert != "" {
		pair, err := tls.X509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Unaddressed takes the address out of an error, in which there may be a secret.
func Unaddressed(err error) error {
	if at, ok := err.(*url.Error); ok {
		return at.Err
	}
	return err
}
