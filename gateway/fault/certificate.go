package fault

import (
	"crypto/tls"
	"crypto/x509"
)

// Certificate makes a self-signed certificate for TLS tests, valid for one day
// from now for the hosts given (names or IP addresses; default 127.0.0.1, ::1
// and localhost): the provider's TLS config, and a pool that trusts it.
func Certificate(hosts ...string) (*tls.Config, *x509.CertPool, error) { panic("not yet") }
