package policy

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Every output carries a reason code and a rule id. Where a decision could not be made the
// reason is "policy_error:<code>" and the rule is "fail_closed".

// Admission says whether a request may begin, and narrows what it may use.
type Admission struct {
	Allow        bool
	Reason       string
	Rule         string
	Message      string   // for the caller, with a denial
	Budget       string   // "" = as otherwise determined
	Groups       []string // a subset of the key's, in this order; nil = all
	Regions      []string // nil = all
	Substitution Wish
}

// Health is what a failure does to the circuit of its scope.
type Health uint8

// The healths. The zero value does nothing.
const (
	HealthIgnore Health = iota
	HealthCounts
)

var healths = []string{"ignore", "counts"}

func (h Health) String() string { return word(healths, h) }

// Scope is what a failure says something about.
type Scope uint8

// The scopes.
const (
	ScopeChannelModel Scope = iota
	ScopeChannel
	ScopeAccount
	ScopeAccountModel
	ScopeProvider
	ScopeRegion
	ScopeTools // capability:tools
	ScopeJSONSchema
	ScopeStreaming
	ScopeVision
	ScopeAudio
)

var scopes = []string{
	"channel_model", "channel", "account", "account_model", "provider", "region", "capability:tools",
	"capability:json_schema", "capability:streaming", "capability:vision", "capability:audio",
}

func (s Scope) String() string { return word(scopes, s) }

// Capability returns the capability that the scope names, or "".
func (s Scope) Capability() string {
	if s < ScopeTools || int(s) >= len(scopes) {
		return ""
	}
	return scopes[s][len("capability:"):]
}

// Failure classifies a failed attempt.
type Failure struct {
	Class   failure.Class
	Reason  string
	Rule    string
	Health  Health
	Scope   Scope
	Isolate bool
}

// Effect returns what the failure does to its scope: an isolation, a cool-down (a rate limit
// is a wait, never a count), a count against the circuit, or nothing.
func (f *Failure) Effect() failure.Health {
	switch {
	case f.Isolate:
		return failure.Isolates
	case f.Class == failure.RateLimited:
		return failure.Cools
	case f.Health == HealthCounts:
		return failure.Counts
	default:
		return failure.Neutral
	}
}

// Reasons of a replay decision that the core understands.
const (
	// ReasonNoCandidate: something would have been allowed, had there been a route, an attempt
	// or time for it.
	ReasonNoCandidate = "no_candidate"
	// ReasonNotIdempotent: the request may have been processed, and doing it again may do
	// something twice.
	ReasonNotIdempotent = "not_idempotent"
)

// Replay lists what may be done after a failure, first choice first. It ends with Stop.
// Shared: not to be changed.
type Replay struct {
	Actions []failure.Action
	Reason  string
	Rule    string
	Delay   time.Duration // at least; the core's backoff and Retry-After apply all the same
}

// OutcomeUnknown reports whether the decision is a stop because the request may have been
// processed and cannot safely be done again.
func (r *Replay) OutcomeUnknown() bool { return r.Reason == ReasonNotIdempotent }

// RanOut reports whether the decision is a stop only because nothing is left to try.
func (r *Replay) RanOut() bool { return r.Reason == ReasonNoCandidate }

// Substitution says whether a substitute may answer in the requested model's place.
type Substitution struct {
	Approve    bool
	Reason     string
	Rule       string
	Disclosure string // what the caller is told, as the reason in `interlock-substitution`
}
