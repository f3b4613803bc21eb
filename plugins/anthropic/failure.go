package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	var f interlock.Failure
	if root, err := json.Parse(in.Body); err == nil {
		for first := range root.Items() { // Vertex AI wraps some errors in an array
			root = first
			break
		}
		f = readError(root.Get("error"))
	}
	if f.Class == "" && in.Status == 529 {
		f.Class = interlock.Overloaded
	}
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}

// readError reads {"type", "message"}, or what Vertex AI itself says: {"status", "message"}.
func readError(v json.Value) (f interlock.Failure) {
	for key, v := range v.Members() {
		switch string(key) {
		case "type":
			f.Type = v.String()
		case "status":
			if f.Type == "" {
				f.Type = v.String()
			}
		case "message":
			f.Message = v.String()
		}
	}
	f.Class = classOf(f.Type, f.Message)
	return f
}

func classOf(kind, message string) string {
	switch kind {
	case "invalid_request_error":
		return invalid(message)
	case "authentication_error", "billing_error":
		return interlock.UpstreamAuth
	case "permission_error":
		if interlock.Says(message, "model") {
			return interlock.ModelUnavailable
		}
		return interlock.UpstreamAuth
	case "not_found_error":
		if interlock.Says(message, "model") {
			return interlock.ModelUnavailable
		}
		return interlock.ClientInvalid // a file, a container
	case "request_too_large":
		return interlock.ContextOverflow
	case "rate_limit_error":
		return interlock.RateLimited
	case "timeout_error":
		return interlock.Timeout
	case "api_error":
		return interlock.ServerError
	case "overloaded_error":
		return interlock.Overloaded
	}
	return ""
}

// invalid tells apart what the provider calls an invalid request and says in words only.
func invalid(message string) string {
	switch {
	case interlock.Says(message, "prompt is too long", "exceed context limit", "input is too long", "exceeds the context window",
		"exceeds the maximum context"):
		return interlock.ContextOverflow
	case interlock.Says(message, "credit balance is too low", "specified api usage limits", "organization has been disabled",
		"spend limit"):
		return interlock.UpstreamAuth
	case interlock.Says(message, "content filtering policy"):
		return interlock.ContentFiltered
	case interlock.Says(message, "model is not available", "model has been deprecated", "model is deprecated"):
		return interlock.ModelUnavailable
	}
	return interlock.ClientInvalid
}
