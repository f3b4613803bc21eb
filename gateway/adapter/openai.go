package adapter

import (
	"strings"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// OpenAI is the native adapter for providers that speak OpenAI's own format.
type OpenAI struct {
	maxEvent int
	now      func() time.Time
}

// NewOpenAI makes the native adapter. maxEvent is the largest event accepted, in bytes; 0 is
// openai.MaxEvent. now is read only where an answer has a Retry-After date and no Date.
func NewOpenAI(maxEvent int, now func() time.Time) *OpenAI {
	return &OpenAI{maxEvent: maxEvent, now: now}
}

// Name implements Adapter.
func (*OpenAI) Name() string { return "openai" }

// Serves implements Adapter: every endpoint is passed on natively.
func (*OpenAI) Serves(e openai.Endpoint) bool { return e != openai.NoEndpoint }

// Request implements Adapter: the caller's body with the model's name edited.
func (*OpenAI) Request(dst []byte, c *Call) (Shaped, error) {
	return Shaped{
		Body:        c.Request.AppendUpstream(dst, c.Body, openai.Edit{Model: c.Model, AskUsage: c.AskUsage}),
		Path:        strings.TrimPrefix(c.Request.Endpoint.Path(), "/v1"),
		ContentType: "application/json",
	}, nil
}

// Response implements Adapter: the answer is in our format already.
func (*OpenAI) Response(_ []byte, _ *Call, _ Answer, body []byte) ([]byte, error) { return body, nil }

// Streams implements Adapter.
func (*OpenAI) Streams(_ *Call, contentType []byte) bool {
	return HasFold(contentType, "text/event-stream")
}

// Events implements Adapter.
func (a *OpenAI) Events(*Call) Events {
	s := splitters.Get().(*splitter)
	s.Max = a.maxEvent
	return s
}

type splitter struct{ openai.Splitter }

var splitters = sync.Pool{New: func() any { return new(splitter) }}

// Release implements Events.
func (s *splitter) Release() {
	s.Reset()
	splitters.Put(s)
}

// Classify implements Adapter.
func (a *OpenAI) Classify(_ *Call, h Answer, body []byte) Failure {
	f := Failure{}
	if u, ok := openai.ReadError(body); ok {
		f = a.ClassifyError(u)
	}
	if !believable(f.Class, h.Status()) {
		f.Class = failure.None
	}
	f.RetryAfter, f.HasRetryAfter = failure.RetryAfter(
		string(h.Header("retry-after")), string(h.Header("retry-after-ms")), string(h.Header("date")), a.now())
	return f
}

// believable says whether a code may speak for an answer with that status. Providers put
// catch-all types such as invalid_request_error on a 401 or a 500 too, where the status knows
// better; about accounts, models, content and the context window the code knows better.
func believable(c failure.Class, status int) bool {
	switch c {
	case failure.ClientInvalid:
		return status == 400 || status == 422
	case failure.RateLimited:
		return status == 429 || status >= 500
	case failure.Overloaded:
		return status == 429 || status >= 500
	case failure.ServerError, failure.Timeout:
		return status >= 500
	case failure.ContextOverflow, failure.ContentFiltered:
		return status < 500 && status != 401 && status != 402 && status != 429
	default:
		return true
	}
}

// ClassifyError implements Adapter.
func (*OpenAI) ClassifyError(u openai.UpstreamError) Failure {
	f := Failure{Error: u}
	if c, ok := codes[strings.ToLower(u.Code)]; ok {
		f.Class = c
	} else if c, ok := codes[strings.ToLower(u.Type)]; ok {
		f.Class = c
	}
	return f
}

// codes maps what OpenAI-compatible providers put into error.code and error.type. A code goes
// before a type. What is not here is left to the policy, which goes by the status.
var codes = map[string]failure.Class{
	"context_length_exceeded": failure.ContextOverflow,
	"context_window_exceeded": failure.ContextOverflow,
	"string_above_max_length": failure.ClientInvalid,
	"too_many_prompt_tokens":  failure.ContextOverflow,
	"prompt_too_long":         failure.ContextOverflow,

	"insufficient_quota":         failure.UpstreamAuth,
	"billing_not_active":         failure.UpstreamAuth,
	"billing_hard_limit_reached": failure.UpstreamAuth,
	"insufficient_balance":       failure.UpstreamAuth,
	"insufficient_credits":       failure.UpstreamAuth,
	"account_deactivated":        failure.UpstreamAuth,
	"account_suspended":          failure.UpstreamAuth,
	"access_terminated":          failure.UpstreamAuth,
	"invalid_api_key":            failure.UpstreamAuth,
	"invalid_authentication":     failure.UpstreamAuth,
	"authentication_error":       failure.UpstreamAuth,
	"incorrect_api_key":          failure.UpstreamAuth,
	"expired_api_key":            failure.UpstreamAuth,
	"api_key_invalid":            failure.UpstreamAuth,
	"api_key_disabled":           failure.UpstreamAuth,
	"organization_deactivated":   failure.UpstreamAuth,
	"ip_not_authorized":          failure.UpstreamAuth,

	"model_not_found":          failure.ModelUnavailable,
	"model_not_available":      failure.ModelUnavailable,
	"model_not_active":         failure.ModelUnavailable,
	"model_decommissioned":     failure.ModelUnavailable,
	"model_terms_required":     failure.ModelUnavailable,
	"deploymentnotfound":       failure.ModelUnavailable,
	"invalid_model":            failure.ModelUnavailable,
	"unsupported_model":        failure.ModelUnavailable,
	"model_permission_blocked": failure.ModelUnavailable,

	"rate_limit_exceeded":   failure.RateLimited,
	"rate_limit_error":      failure.RateLimited,
	"rate_limit_reached":    failure.RateLimited,
	"ratelimitreached":      failure.RateLimited,
	"too_many_requests":     failure.RateLimited,
	"slow_down":             failure.Overloaded,
	"overloaded":            failure.Overloaded,
	"overloaded_error":      failure.Overloaded,
	"server_is_overloaded":  failure.Overloaded,
	"engine_overloaded":     failure.Overloaded,
	"capacity_exceeded":     failure.Overloaded,
	"model_overloaded":      failure.Overloaded,
	"no_capacity":           failure.Overloaded,
	"capacity_error":        failure.Overloaded,
	"server_error":          failure.ServerError,
	"internal_error":        failure.ServerError,
	"internal_server_error": failure.ServerError,
	"api_error":             failure.ServerError,
	"timeout":               failure.Timeout,
	"timeout_error":         failure.Timeout,
	"request_timeout":       failure.Timeout,

	"content_policy_violation":       failure.ContentFiltered,
	"content_filter":                 failure.ContentFiltered,
	"content_filter_error":           failure.ContentFiltered,
	"moderation_blocked":             failure.ContentFiltered,
	"responsibleaipolicyviolation":   failure.ContentFiltered,
	"data_inspection_failed":         failure.ContentFiltered,
	"image_content_policy_violation": failure.ContentFiltered,
	"cyber_policy":                   failure.ContentFiltered,

	"invalid_request_error": failure.ClientInvalid,
	"invalid_request":       failure.ClientInvalid,
	"invalid_value":         failure.ClientInvalid,
	"unsupported_parameter": failure.ClientInvalid,
	"unsupported_value":     failure.ClientInvalid,
	"tool_use_failed":       failure.ClientInvalid,
}

var (
	_ Adapter = (*OpenAI)(nil)
	_ Events  = (*splitter)(nil)
)
