package main

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// classes say what each of the provider's kinds of error means. The class decides what the
// gateway may do: ask again, ask another provider, or tell the caller. Where it stays empty, the
// status decides.
var classes = [...]struct{ kind, class string }{
	{"bad_request", interlock.ClientInvalid},
	{"too_long", interlock.ContextOverflow},
	{"blocked", interlock.ContentFiltered},
	{"slow_down", interlock.RateLimited},
	{"overloaded", interlock.Overloaded},
	{"bad_key", interlock.UpstreamAuth},
	{"no_such_model", interlock.ModelUnavailable},
	{"internal", interlock.ServerError},
}

// failure reads {"kind", "message", "field"}.
func failure(v json.Value) *interlock.Failure {
	f := &interlock.Failure{
		Type: v.Get("kind").String(), Message: v.Get("message").String(), Param: v.Get("field").String(),
	}
	for _, c := range classes {
		if f.Type == c.kind {
			f.Class = c.class
		}
	}
	return f
}

// classify says what an answer with a status other than 2xx means. Its body may be anything: a
// page of a proxy, nothing, JSON that was cut.
func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	var f interlock.Failure
	if root, err := json.Parse(in.Body); err == nil {
		if e := root.Get("error"); e.IsObject() {
			f = *failure(e)
		}
	}
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}
