package config

import "time"

// Listen is the listener for callers.
type Listen struct {
	// Host and port. A change needs a restart.
	Address string `yaml:"address" default:"127.0.0.1:8080" is:"address"`
	// TLS, where the gateway itself terminates it.
	TLS ListenTLS `yaml:"tls"`
	// The largest body of a request; more is 413.
	MaxRequestBody Size `yaml:"max_request_body" default:"64MiB" min:"1KiB" max:"4GiB"`
	// All bodies in flight together, counted until output is committed: a share of the memory
	// limit, or a size. Beyond it a request is answered 503 with retry-after.
	MaxInflightBody SizeShare `yaml:"max_inflight_body" default:"25%"`
	// The time a caller has for a request's head.
	ReadHeaderTimeout time.Duration `yaml:"read_header_timeout" default:"10s" min:"1ms"`
	// The time a caller has for a request's body.
	ReadBodyTimeout time.Duration `yaml:"read_body_timeout" default:"60s" min:"1ms"`
	// How long an idle connection is kept.
	IdleTimeout time.Duration `yaml:"idle_timeout" default:"2m" min:"1ms"`
	// What a caller's FIN means. leave: the caller is gone; keep: only a reset does that.
	HalfClose HalfClose `yaml:"half_close" default:"leave" enum:"leave|keep"`
	// On SIGTERM: not ready for this long, still accepting.
	DrainDelay time.Duration `yaml:"drain_delay" default:"5s"`
	// Then running streams may finish for this long; the rest end with an error event.
	DrainTimeout time.Duration `yaml:"drain_timeout" default:"10m"`
}

// ListenTLS names the files of a listener's certificate.
type ListenTLS struct {
	// The certificate chain in PEM; together with key_file.
	CertFile string `yaml:"cert_file" is:"path"`
	// The certificate's private key in PEM.
	KeyFile string `yaml:"key_file" is:"path"`
	// Where set, callers need a certificate that one of these signed.
	ClientCAFile string `yaml:"client_ca_file" is:"path"`
}

// Enabled says whether the listener speaks TLS.
func (t ListenTLS) Enabled() bool { return t.CertFile != "" }

// HalfClose says what a caller's FIN means.
type HalfClose string

// The meanings.
const (
	HalfCloseLeave HalfClose = "leave"
	HalfCloseKeep  HalfClose = "keep"
)

// Admin is the listener for operators.
type Admin struct {
	// Host and port. A change needs a restart.
	Listen string `yaml:"listen" default:"127.0.0.1:8081" is:"address"`
	// The token of one admin. One is required where the listener is not on loopback.
	Token Secret `yaml:"token" is:"token"`
	// Further tokens.
	Tokens []AdminToken `yaml:"tokens"`
}

// AdminToken is one operator's token.
type AdminToken struct {
	// Who it is, as changes are recorded.
	Name string `yaml:"name" required:"true" is:"name"`
	// The token.
	Token Secret `yaml:"token" required:"true" is:"token"`
	// What it may do: look; set switches and reset circuits too; everything.
	Role Role `yaml:"role" default:"viewer" enum:"viewer|operator|admin"`
}

// Role is what an operator may do. Each may do what those before it may.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Secured says whether any token is configured, so that one is asked for.
func (a Admin) Secured() bool { return a.Token != "" || len(a.Tokens) > 0 }
