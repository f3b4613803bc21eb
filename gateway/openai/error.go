package openai

import (
	"strconv"
	"time"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// Code is the stable code of an error that the gateway answers with. An error passed on from a
// provider carries the provider's own.
type Code string

// The gateway's codes.
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
	PartialStream         Code = "partial_stream" // inside a stream only
)

type answerTo struct {
	status int
	kind   string
	again  bool // x-should-retry
}

// codeTable is the one table from codes to statuses, types and x-should-retry. RoutesExhausted is
// 429, with another type and worth asking again, where RoutesExhaustedWith is told so.
var codeTable = map[Code]answerTo{
	InvalidAPIKey:         {401, "authentication_error", false},
	PermissionDenied:      {403, "permission_error", false},
	ModelNotFound:         {404, "invalid_request_error", false},
	NotFound:              {404, "invalid_request_error", false},
	InvalidRequest:        {400, "invalid_request_error", false},
	UnsupportedParameter:  {400, "invalid_request_error", false},
	RequestTooLarge:       {413, "invalid_request_error", false},
	RateLimitExceeded:     {429, "rate_limit_error", true},
	InsufficientQuota:     {429, "rate_limit_error", false},
	GroupsFull:            {429, "rate_limit_error", true},
	AttemptsExhausted:     {429, "rate_limit_error", false},
	QueueFull:             {429, "rate_limit_error", true},
	GatewayBusy:           {503, "server_error", true},
	PolicyDenied:          {403, "permission_error", false},
	GuardRefused:          {403, "permission_error", false},
	PolicyUnavailable:     {503, "server_error", false},
	StorageUnavailable:    {503, "server_error", false},
	UpstreamRejected:      {502, "upstream_error", false},
	RoutesExhausted:       {502, "upstream_error", false},
	DeadlineExceeded:      {504, "upstream_error", false},
	NoEligibleRoute:       {503, "upstream_error", false},
	SideEffectUnknown:     {409, "conflict_error", false},
	OutcomeUnknown:        {502, "upstream_error", false},
	IdempotencyInProgress: {409, "conflict_error", true},
	IdempotencyMismatch:   {422, "invalid_request_error", false},
	InternalError:         {500, "server_error", false},
	GatewayShutdown:       {503, "server_error", true},
	PartialStream:         {502, "server_error", false},
}

// Error is the one error a caller can get. Make it with NewError, RoutesExhaustedWith or
// FromUpstream, then fill in what is known about the request.
type Error struct {
	Status  int    // HTTP status
	Type    string // "invalid_request_error"
	Code    Code   // the gateway's, or a provider's own; "" is null
	Message string // without the request ID, which rendering adds
	Param   string // the field at fault; "" is null

	// The interlock block; left out of the body as long as RequestID is empty. Terminal, Class and
	// Phase are the vocabulary's words; an empty one is left out.
	RequestID string
	Terminal  string
	Class     string
	Phase     string
	Attempts  int

	ShouldRetry bool // x-should-retry
	// HasRetryAfter says that retry-after and retry-after-ms are owed, and RetryAfter what they
	// say. The gateway's own are at most a minute; a provider's is passed on unshortened.
	HasRetryAfter bool
	RetryAfter    time.Duration
}

// NewError makes an error with the status, type and x-should-retry of its code. A code that is
// not the gateway's is answered as InternalError's.
func NewError(c Code, message string) *Error {
	a, ok := codeTable[c]
	if !ok {
		a = codeTable[InternalError]
	}
	return &Error{Status: a.status, Type: a.kind, Code: c, Message: message, ShouldRetry: a.again}
}

// RoutesExhaustedWith makes the error of a request whose routes all failed. Status 429 is for when
// the last failure of each was a rate limit, or every route is only cooling down: that is worth
// asking again. Any other status is answered as 502.
func RoutesExhaustedWith(status int, message string) *Error {
	e := NewError(RoutesExhausted, message)
	if status == 429 {
		e.Status, e.Type, e.ShouldRetry = status, "rate_limit_error", true
	}
	return e
}

// FromUpstream makes the error of an upstream's 4xx that is the caller's: the provider's status
// (403 and 422 become 400; what is no 4xx becomes 400 too), its type, code and param, and its
// message, redacted.
func FromUpstream(status int, u UpstreamError, secrets ...string) *Error {
	if status == 403 || status == 422 || status < 400 || status > 499 {
		status = 400
	}
	e := &Error{
		Status:  status,
		Type:    Redact(u.Type, secrets...),
		Code:    Code(Redact(u.Code, secrets...)),
		Message: Redact(u.Message, secrets...),
		Param:   Redact(u.Param, secrets...),
	}
	if e.Type == "" || errorStatus(e.Type) != 0 {
		e.Type = "invalid_request_error"
	}
	if e.Message == "" {
		e.Message = "the provider rejected the request"
	}
	return e
}

// Error implements error: code and message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// AppendJSON appends the error as a whole body: {"error": {"message", "type", "code", "param",
// "interlock": {"request_id", "terminal", "class", "phase", "attempts"}}}.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = e.appendMessage(dst)
	dst = append(dst, `,"type":`...)
	dst = jsonx.AppendString(dst, e.Type)
	dst = append(dst, `,"code":`...)
	dst = appendOrNull(dst, string(e.Code))
	dst = append(dst, `,"param":`...)
	dst = appendOrNull(dst, e.Param)
	dst = e.appendInterlock(dst)
	return append(dst, '}', '}')
}

// appendMessage appends the message as a JSON string; it is never empty and ends with the
// request's ID.
func (e *Error) appendMessage(dst []byte) []byte {
	dst = append(dst, '"')
	if e.Message == "" {
		dst = jsonx.AppendContents(dst, string(e.Code))
	} else {
		dst = jsonx.AppendContents(dst, e.Message)
	}
	if e.RequestID != "" {
		dst = append(dst, " (request "...)
		dst = jsonx.AppendContents(dst, e.RequestID)
		dst = append(dst, ')')
	}
	return append(dst, '"')
}

func (e *Error) appendInterlock(dst []byte) []byte {
	if e.RequestID == "" {
		return dst
	}
	dst = append(dst, `,"interlock":{"request_id":`...)
	dst = jsonx.AppendString(dst, e.RequestID)
	for _, f := range [...]struct{ name, value string }{
		{`,"terminal":`, e.Terminal},
		{`,"class":`, e.Class},
		{`,"phase":`, e.Phase},
	} {
		if f.value != "" {
			dst = append(dst, f.name...)
			dst = jsonx.AppendString(dst, f.value)
		}
	}
	dst = append(dst, `,"attempts":`...)
	dst = strconv.AppendInt(dst, int64(e.Attempts), 10)
	return append(dst, '}')
}

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return jsonx.AppendString(dst, s)
}

// RetryAfterSeconds renders d for a retry-after header: whole seconds, rounded up, at least 1.
func RetryAfterSeconds(d time.Duration) int64 { return roundedUp(d, time.Second) }

// RetryAfterMillis renders d for a retry-after-ms header: milliseconds, rounded up, at least 1.
func RetryAfterMillis(d time.Duration) int64 { return roundedUp(d, time.Millisecond) }

func roundedUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return max(n, 1)
}
