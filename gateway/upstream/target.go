package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Target says where a channel's requests go. Build one with [ParseTarget].
type Target struct {
	// Secure is true for https.
	Secure bool
	// Host is the host name or IP address, without brackets or port.
	Host string
	// Port is the TCP port, filled in from the scheme where the URL has none.
	Port string
	// BasePath is put before every path: "" or "/v1", never with a slash at its end.
	BasePath string
	// Query is added to every request: "" or "api-version=2025-01-01".
	Query string
	// TLS holds what https needs beyond the system's defaults.
	TLS TLS
	// Proxy is "" or the URL of a proxy: http://[user:password@]host[:port] (by CONNECT, for
	// plain http too) or socks5://[user:password@]host[:port] (the proxy resolves the name).
	// The environment's proxy settings are not read.
	Proxy string

	authority string // what goes into Host
}

// TLS changes how an upstream is authenticated. At least TLS 1.2 and HTTP/1.1 always hold.
type TLS struct {
	// CAFile, if set, replaces the system's roots by the PEM certificates in it.
	CAFile string
	// CertFile and KeyFile are the client's certificate and key in PEM; both or none.
	CertFile, KeyFile string
	// ServerName replaces the host name in the handshake and in the verification.
	ServerName string
}

// ParseTarget reads a base URL: http or https, a host, no user, no fragment. Errors say
// what is wrong and what is allowed and never quote a password.
func ParseTarget(baseURL string) (Target, error) {
	u, err := parseURL(baseURL)
	if err != nil {
		return Target{}, fmt.Errorf("base URL: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return Target{}, fmt.Errorf("base URL: scheme %q is not known; allowed are http and https", u.Scheme)
	case u.User != nil:
		return Target{}, errors.New("base URL: a user or password does not belong in it; use the channel's credential")
	case u.Fragment != "" || strings.Contains(baseURL, "#"):
		return Target{}, errors.New("base URL: a fragment (#…) does not belong in it")
	}
	t := Target{Secure: u.Scheme == "https", BasePath: strings.TrimRight(u.EscapedPath(), "/"), Query: u.RawQuery}
	t.Host, t.Port = u.Hostname(), u.Port()
	if t.Port == "" {
		t.Port = map[bool]string{false: "80", true: "443"}[t.Secure]
	}
	return t.complete()
}

// parseURL is url.Parse with errors that do not quote the URL.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	if u.Hostname() == "" {
		return nil, errors.New("has no host")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("port %q is not one of 1 to 65535", p)
		}
	}
	return u, nil
}

// complete checks the parts and fills in what is computed from them.
func (t Target) complete() (Target, error) {
	if t.Host == "" || t.Port == "" {
		return t, errors.New("target: no host or port")
	}
	if !isPath("/"+t.Host) || strings.ContainsAny(t.Host, "/?@[]") {
		return t, errors.New("target: the host holds bytes that no host name has")
	}
	if t.BasePath != "" && !isPath(t.BasePath) || strings.Contains(t.BasePath, "?") {
		return t, errors.New("target: the base path must be empty or start with a slash, printable ASCII without blanks, '?' or '#'")
	}
	if !isPath("/" + t.Query) {
		return t, errors.New("target: the query must be printable ASCII without blanks or '#'")
	}
	t.authority = t.Host
	if strings.Contains(t.Host, ":") {
		t.authority = "[" + t.Host + "]"
	}
	if t.Port != "80" && !t.Secure || t.Port != "443" && t.Secure {
		t.authority += ":" + t.Port
	}
	return t, nil
}

func (t *Target) address() string { return net.JoinHostPort(t.Host, t.Port) }

// tlsConfig builds the client's TLS settings; nil for plain http.
func (t *Target) tlsConfig() (*tls.Config, error) {
	if !t.Secure {
		return nil, nil
	}
	c := &tls.Config{
		ServerName: t.Host,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		// One cache per pool: sessions never cross channels.
		ClientSessionCache: tls.NewLRUClientSessionCache(32),
	}
	if t.TLS.ServerName != "" {
		c.ServerName = t.TLS.ServerName
	}
	if f := t.TLS.CAFile; f != "" {
		pem, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file %s: no PEM certificate in it", f)
		}
	}
	if t.TLS.CertFile == "" && t.TLS.KeyFile == "" {
		return c, nil
	}
	if t.TLS.CertFile == "" || t.TLS.KeyFile == "" {
		return nil, errors.New("client_cert and client_key: one without the other")
	}
	pair, err := tls.LoadX509KeyPair(t.TLS.CertFile, t.TLS.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("client_cert %s, client_key %s: %w", t.TLS.CertFile, t.TLS.KeyFile, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// proxy is a parsed proxy URL.
type proxy struct {
	socks          bool
	address        string
	user, password string
	authorization  string // for CONNECT; "" without a user
}

func parseProxy(s string) (*proxy, error) {
	if s == "" {
		return nil, nil
	}
	u, err := parseURL(s)
	if err != nil {
		return nil, fmt.Errorf("proxy: the URL %w", err)
	}
	p := &proxy{}
	port := u.Port()
	switch u.Scheme {
	case "http":
		port = orDefault(port, "80")
	case "socks5", "socks5h":
		p.socks, port = true, orDefault(port, "1080")
	default:
		return nil, fmt.Errorf("proxy: scheme %q is not known; allowed are http and socks5", u.Scheme)
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	if u.User != nil {
		p.user = u.User.Username()
		p.password, _ = u.User.Password()
		p.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.password))
	}
	return p, nil
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
