package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	root, _ := json.Parse(in.Body)
	f := read(root, in.Status)
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}

// read makes a failure of {"id","message"}, which may have an "error_type". status is 0 inside of
// an answer.
func read(v json.Value, status uint32) (f interlock.Failure) {
	for key, v := range v.Members() {
		switch string(key) {
		case "message":
			f.Message = v.String()
		case "error_type":
			f.Type = v.String()
		}
	}
	f.Class = classOf(f.Type, f.Message, status)
	return f
}

// classOf reads the status, and the words where one status stands for several classes: the
// provider has no codes but for the one below.
func classOf(kind, message string, status uint32) string {
	switch status {
	case 400, 422:
		return invalid(kind, message)
	case 401, 402:
		return interlock.UpstreamAuth
	case 404:
		if interlock.Says(message, "model '", "finetuned model") {
			return interlock.ModelUnavailable
		}
	case 429:
		// A trial key has so many calls a month; waiting does not help.
		if interlock.Says(message, "api calls / month") {
			return interlock.UpstreamAuth
		}
		return interlock.RateLimited
	case 498:
		return interlock.ContentFiltered
	case 503, 529:
		return interlock.Overloaded
	case 0:
		switch class := invalid(kind, message); {
		case class != interlock.ClientInvalid:
			return class
		case interlock.Says(message, "too many requests", "rate limit"):
			return interlock.RateLimited
		}
		return interlock.ServerError
	}
	return ""
}

func invalid(kind, message string) string {
	switch {
	case interlock.Says(message, "max tokens must be less than"): // too many for the answer
		return interlock.ClientInvalid
	case kind == "TOO_MANY_TOKENS", interlock.Says(message, "too many tokens"):
		return interlock.ContextOverflow
	case interlock.Says(message, "is not ready for serving", "is not supported by the chat api", "is not supported by the embed api"):
		return interlock.ModelUnavailable
	}
	return interlock.ClientInvalid
}
