package openai

import "time"

// Code is the stable code of an error that the gateway answers with.
type Code string

// The codes.
const (
	InvalidAPIKey         Code = "invalid_api_key"
	PermissionDenied      Code = "permission_denied"
	ModelNotFound         Code = "model_not_found"
	NotFound              Code = "not_found"
	InvalidRequest        Code = "invalid_request"
	UnsupportedParameter  Code = "unsupported_parameter"
	RequestTooLarge       Code = "request_too_large"
	RateLimitExceeded     Code = "rate_limit_exceeded"
	InsufficientQuota     Code = "insufficient_quota"
	GroupsFull            Code = "groups_full"
	AttemptsExhausted     Code = "attempts_exhausted"
	QueueFull             Code = "queue_full"
	GatewayBusy           Code = "gateway_busy"
	PolicyDenied          Code = "policy_denied"
	GuardRefused          Code = "guard_refused"
	PolicyUnavailable     Code = "policy_unavailable"
	StorageUnavailable    Code = "storage_unavailable"
	UpstreamRejected      Code = "upstream_rejected"
	RoutesExhausted       Code = "routes_exhausted"
	DeadlineExceeded      Code = "deadline_exceeded"
	NoEligibleRoute       Code = "no_eligible_route"
	SideEffectUnknown     Code = "side_effect_unknown"
	OutcomeUnknown        Code = "outcome_unknown"
	IdempotencyInProgress Code = "idempotency_in_progress"
	IdempotencyMismatch   Code = "idempotency_mismatch"
	InternalError         Code = "internal_error"
	GatewayShutdown       Code = "gateway_shutdown"
	PartialStream         Code = "partial_stream"
)

// Error is the one error a caller can get. Make it with NewError, RoutesExhaustedWith or
// FromUpstream, then fill in what is known about the request.
type Error struct {
	Status  int    // HTTP status
	Type    string // "invalid_request_error"
	Code    Code   // the gateway's, or a provider's own; "" is null
	Message string // without the request ID, which rendering adds
	Param   string // the field at fault; "" is null

	// The interlock block; left out of the body as long as RequestID is empty.
	RequestID string
	Terminal  string
	Class     string
	Phase     string
	Attempts  int

	ShouldRetry   bool // x-should-retry
	HasRetryAfter bool
	RetryAfter    time.Duration
}

// NewError makes an error with the status, type and x-should-retry of its code.
func NewError(c Code, message string) *Error { panic("not yet") }

// RoutesExhaustedWith makes the error of a request whose routes all failed: status 429 when the
// last failure of each was a rate limit (worth asking again), else 502.
func RoutesExhaustedWith(status int, message string) *Error { panic("not yet") }

// FromUpstream makes the error of an upstream's 4xx that is the caller's: the provider's status
// (403 and 422 become 400), type, code and param, and its message, redacted.
func FromUpstream(status int, u UpstreamError, secrets ...string) *Error { panic("not yet") }

// Error implements error.
func (e *Error) Error() string { panic("not yet") }

// AppendJSON appends the error as a body: {"error": {...}}.
func (e *Error) AppendJSON(dst []byte) []byte { panic("not yet") }

// RetryAfterSeconds renders d for a retry-after header: whole seconds, rounded up, at least 1.
func RetryAfterSeconds(d time.Duration) int64 { panic("not yet") }

// RetryAfterMillis renders d for a retry-after-ms header: rounded up, at least 1.
func RetryAfterMillis(d time.Duration) int64 { panic("not yet") }

// UpstreamError is what a provider said was wrong. Absent facts are empty.
type UpstreamError struct {
	Message string // as sent: not redacted
	Type    string
	Code    string // numbers in decimal
	Param   string
	Status  int // a numeric code that is an HTTP status; 0 otherwise
}

// ReadError finds an error in a provider's body, whatever its shape.
func ReadError(body []byte) (UpstreamError, bool) { panic("not yet") }

// Redact removes what a caller must not see from a provider's message: the secrets given, things
// that look like credentials, URLs, account, organisation and project IDs, control characters;
// and it caps the length.
func Redact(message string, secrets ...string) string { panic("not yet") }
