package policy

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Inputs are comparable structs of quantised facts: equal inputs are one decision. They hold
// no text of a prompt or an answer and no secret. A string that is not known is left empty
// and reaches the policy as "unknown"; only Request.Alias and Caller.Budget, where empty
// means "none", stay "".

// Detail holds free numbers, as `input.detail`. A package that reads any of it is evaluated
// for each request instead of being memoised. Negative values and a nil Detail are unknown
// and reach the policy as -1.
type Detail struct {
	Now             time.Time // zero: unknown
	Elapsed         time.Duration
	TimeLeft        time.Duration
	RetryAfter      time.Duration
	BodyBytes       int64
	MaxOutputTokens int64
}

// Key names the caller's API key.
type Key struct {
	Name   string
	Labels Object
}

// Request holds the facts of a request for admission and substitution.
type Request struct {
	Endpoint         string // chat_completions, responses, completions, embeddings, moderations …
	Kind             string // see KindOf
	Model            string // as asked for: a model's or an alias's public name
	Alias            string // "" = none
	Modalities       List
	StructuredOutput StructuredOutput
	SideEffects      SideEffects
	Stream           bool
	Tools            bool
	HostedTools      bool
	ParallelTools    bool
	Idempotent       bool
}

// Caller holds what the caller asked of the gateway.
type Caller struct {
	Substitution Wish   // interlock-substitution
	Budget       string // interlock-budget; "" = none named
}

// AdmissionInput is asked once a request, after the key is known.
type AdmissionInput struct {
	Key     Key
	Request Request
	Caller  Caller
	Detail  *Detail
}

// FailureFacts is what is known of a failed attempt before it is classified.
type FailureFacts struct {
	AdapterClass      failure.Class // None: the adapter does not know
	Transport         failure.Transport
	Status            int    // 0 = no answer
	ProviderCode      string // see NormaliseCode
	ProviderType      string
	Phase             failure.Phase
	RequestSent       bool
	RetryAfterPresent bool
}

// Channel names the channel of a failed attempt.
type Channel struct{ Group, Name, Provider, Region string }

// FailureInput is asked after an attempt did not succeed.
type FailureInput struct {
	Failure FailureFacts
	Channel Channel
	Model   string // public name
	Detail  *Detail
}

// Failed is a classified failure.
type Failed struct {
	Class       failure.Class
	Phase       failure.Phase
	RequestSent bool
}

// ReplayRequest holds the facts of a request for replay.
type ReplayRequest struct {
	Endpoint         string
	Kind             string
	Alias            string // "" = none
	SideEffects      SideEffects
	StructuredOutput StructuredOutput
	Release          Release
	Idempotent       bool
	Stream           bool
}

// Attempt counts the attempts made so far, the failed one included.
type Attempt struct {
	Number    int           // in total
	SameRoute int           // on the failed attempt's route: 1 = its first
	SameGroup int           // in its group
	Cause     failure.Cause // of the failed attempt
}

// Budget is what is left. AttemptsLeft is capped at 5.
type Budget struct {
	AttemptsLeft   int
	TimeLeft       TimeLeft
	RetryAfter     RetryAfter
	RetryAfterFits bool // true where no Retry-After holds the route back
}

// Candidates counts what the interlocks leave open right now, each capped at 3.
type Candidates struct {
	SameRoute                  int
	SameContract               int // untried equal routes
	SameContractSchemaVerified int // of those, verified for this request's schema
	Substitutes                int // approved ones
}

// ReplayInput is asked after classification.
type ReplayInput struct {
	Failure    Failed
	Request    ReplayRequest
	Labels     Object // the key's
	Attempt    Attempt
	Budget     Budget
	Candidates Candidates
	Detail     *Detail
}

// Price is in US dollars per million tokens; a negative number is unknown.
type Price struct{ Input, Output float64 }

// Alias is the product contract under which a substitute is looked at.
type Alias struct {
	Name         string
	Version      int
	Requires     Object // as in the config, without what it does not demand
	QualityGates Object
}

// Model is the requested model.
type Model struct {
	Name  string
	Price Price
}

// Evidence is what contract probes showed of a candidate. A negative number is unknown.
type Evidence struct {
	TaskSuccessRate float64
	SchemaValidRate float64
	SafetyPassRate  float64
	AgeHours        int
}

// NoEvidence is the evidence of a candidate that has none.
var NoEvidence = Evidence{TaskSuccessRate: -1, SchemaValidRate: -1, SafetyPassRate: -1, AgeHours: -1}

// Candidate is the substitute that is asked about.
type Candidate struct {
	Model         string
	Price         Price
	Capabilities  List
	ContextWindow Window // against the requested model's
	Evidence      Evidence
}

// SubstitutionInput is asked per listed substitute.
type SubstitutionInput struct {
	Request      Request
	Labels       Object // the key's
	Alias        Alias
	Requested    Model
	Candidate    Candidate
	Substitution Wish // the caller's
	Class        failure.Class
	Detail       *Detail
}
