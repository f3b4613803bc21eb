package upstream

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
	// Proxy is "" or the URL of a proxy: http://[user:password@]host[:port] (by CONNECT) or
	// socks5://[user:password@]host[:port] (the proxy resolves the name). The environment's
	// proxy settings are not read.
	Proxy string
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
func ParseTarget(baseURL string) (Target, error) { panic("upstream: not written yet") }
