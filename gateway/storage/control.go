package storage

import "time"

// Switch is one kill switch that is set. Kind and Name are the two parts of its path in
// the admin API: "channel" and "GROUP/NAME", "action" and "same_route_retry" and so on.
type Switch struct {
	Kind   string
	Name   string
	Reason string
	Until  time.Time // when it ends by itself; zero: never
	Who    string
	At     time.Time
}

// Key is a caller's key that was made at run time. The key itself is never kept.
type Key struct {
	ID      string
	Name    string
	SHA256  [32]byte
	Groups  []string
	Models  []string
	Budget  string
	Budgets []string
	RPM     int
	Labels  map[string]string
	Who     string
	Created time.Time
}

// Isolation takes a scope out of service until its credential changes, an operator ends
// it, or a probe succeeds.
type Isolation struct {
	Scope       string // such as "account/acme-openai" or "channel/primary/openai-eu"
	Reason      string
	Since       time.Time
	Fingerprint string // of the credential in use then, never the credential
}

// Investigation is something a person should look into. At most one with the same Cause
// and Scope is open at any time.
type Investigation struct {
	ID       string
	Kind     string
	Scope    string
	Cause    string
	OpenedAt time.Time
	ClosedAt time.Time // zero: still open
	ClosedBy string
	Note     string
}

// Change is one change that an operator made. Before and After are JSON, empty where
// there was nothing.
type Change struct {
	ID     int64
	At     time.Time
	Who    string
	What   string
	Before string
	After  string
	Reason string
}
