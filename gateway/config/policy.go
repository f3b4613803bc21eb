package config

import "time"

// Policy is what decides.
type Policy struct {
	// Policy bundles; none is the built-in default bundle.
	Bundles []Bundle `yaml:"bundles"`
	// The time of one evaluation; past it the decision fails closed.
	Timeout time.Duration `yaml:"timeout" default:"250ms" min:"1ms" max:"1m"`
	// Where decisions are logged.
	DecisionLog DecisionLog `yaml:"decision_log"`
	// Where it is reported what became of the bundles.
	Status PolicyReports `yaml:"status"`
	// A bundle that is tried beside the active ones.
	Candidate Candidate `yaml:"candidate"`
}

// Bundle is one policy bundle: from a path or from a URL.
type Bundle struct {
	// Unique among the bundles.
	Name string `yaml:"name" required:"true" is:"name"`
	// A directory or a .tar.gz file; watched.
	Path string `yaml:"path" is:"path"`
	// The bundle's address on a bundle server.
	URL string `yaml:"url" is:"http"`
	// How often the server is asked.
	Poll time.Duration `yaml:"poll" default:"10s" min:"100ms"`
	// What the bundle must be signed with: a public key in PEM (RS256, ES256) or a shared secret
	// (HS256).
	VerificationKey Secret `yaml:"verification_key" literal:"ok"`
	// The ID of the key that the signature must name; none is any.
	VerificationKeyID string `yaml:"verification_key_id" is:"name"`
	// The scope that the signature must have; none is one without a scope.
	VerificationScope string `yaml:"verification_scope" is:"name"`
	// Do without a signature, where there is no verification_key.
	Unsigned bool `yaml:"unsigned"`
	// A bearer token for the bundle server.
	Token Secret `yaml:"token" is:"token"`
	// A client certificate for the bundle server, in PEM.
	ClientCert string `yaml:"client_cert" is:"path"`
	// Its private key.
	ClientKey string `yaml:"client_key" is:"path"`
	// The certificates that the bundle server's may come from, instead of the system's.
	CAFile string `yaml:"ca_file" is:"path"`
}

// DecisionLog says where decisions are logged, beside the ledger.
type DecisionLog struct {
	// To the gateway's own log. All three have the events of OPA's decision logs.
	Console bool `yaml:"console"`
	// To a file, one JSON object a line; opened anew when it was moved away.
	File string `yaml:"file" is:"path"`
	// To a server that takes OPA's decision logs: a gzipped JSON array at this address and /logs.
	URL string `yaml:"url" is:"http"`
	// A bearer token for the server.
	Token Secret `yaml:"token" is:"token"`
	// A client certificate for the server, in PEM.
	ClientCert string `yaml:"client_cert" is:"path"`
	// Its private key.
	ClientKey string `yaml:"client_key" is:"path"`
	// The certificates that the server's may come from, instead of the system's.
	CAFile string `yaml:"ca_file" is:"path"`
}

// PolicyReports say where the state of the bundles is reported.
type PolicyReports struct {
	// To the gateway's own log. All three have the reports of OPA's status API.
	Console bool `yaml:"console"`
	// To a file, one JSON object a line; opened anew when it was moved away.
	File string `yaml:"file" is:"path"`
	// To a server that takes OPA's status reports: a JSON object at this address and /status.
	URL string `yaml:"url" is:"http"`
	// A bearer token for the server.
	Token Secret `yaml:"token" is:"token"`
	// A client certificate for the server, in PEM.
	ClientCert string `yaml:"client_cert" is:"path"`
	// Its private key.
	ClientKey string `yaml:"client_key" is:"path"`
	// The certificates that the server's may come from, instead of the system's.
	CAFile string `yaml:"ca_file" is:"path"`
}

// Candidate is a bundle that is tried beside the active ones.
type Candidate struct {
	// A directory or a .tar.gz file.
	Path string `yaml:"path" is:"path"`
	// shadow: evaluated and compared only; canary: decides for a share of the keys.
	Mode CandidateMode `yaml:"mode" default:"shadow" enum:"shadow|canary"`
	// The share of keys in canary mode.
	Percent float64 `yaml:"percent" min:"0" max:"100"`
}

// CandidateMode is what a candidate bundle does.
type CandidateMode string

// The modes.
const (
	Shadow CandidateMode = "shadow"
	Canary CandidateMode = "canary"
)
