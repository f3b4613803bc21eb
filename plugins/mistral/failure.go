package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	root, _ := json.Parse(in.Body)
	f := read(root, in.Status)
	f.Status = 0
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}

// isError says whether the member of an answer, or of a part of one, reports an error.
func isError(key []byte, v json.Value) bool {
	switch string(key) {
	case "object":
		return v.Is("error")
	case "error", "detail":
		return !v.IsNull()
	}
	return false
}

// read makes a failure of a body. There are several: {"object":"error","message","type","param",
// "code"}, whose message may be an object with details, {"message"} of the provider's front, and
// {"detail"}, which is a text or a list of what is wrong with the body. status is 0 inside of an
// answer.
func read(v json.Value, status uint32) (f interlock.Failure) {
	if inner := v.Get("error"); inner.IsObject() {
		v = inner
	} else if inner.IsString() {
		f.Message = inner.String()
	}
	for key, v := range v.Members() {
		switch string(key) {
		case "message":
			if v.IsObject() {
				detail(&f, v.Get("detail"))
			} else if v.IsString() {
				f.Message = v.String()
			}
		case "detail":
			detail(&f, v)
		case "type":
			f.Type = v.String()
		case "code":
			if f.Code = v.String(); v.IsNumber() {
				f.Code = string(v)
			}
		case "param":
			if v.IsString() {
				f.Param = v.String()
			}
		case "raw_status_code":
			if n, ok := v.Uint(); ok && n >= 400 && n < 600 {
				f.Status = uint32(n)
			}
		}
	}
	if status == 0 {
		status = f.Status
	}
	f.Class = classOf(f.Type, f.Message, status)
	return f
}

// detail reads what is wrong: a text, or a list whose first item says where.
func detail(f *interlock.Failure, v json.Value) {
	if v.IsString() {
		f.Message = v.String()
		return
	}
	for item := range v.Items() {
		var at []byte
		for step := range item.Get("loc").Items() {
			if len(at) == 0 && step.Is("body") {
				continue
			}
			if len(at) > 0 {
				at = append(at, '.')
			}
			if step.IsString() {
				at = step.AppendDecoded(at)
			} else {
				at = append(at, step...)
			}
		}
		f.Param = string(at)
		f.Message = item.Get("msg").String()
		if f.Param != "" {
			f.Message = f.Param + ": " + f.Message
		}
		return
	}
}

// classOf reads the type, and the words only where a type stands for several classes or for none.
func classOf(kind, message string, status uint32) string {
	switch kind {
	case "invalid_model":
		return interlock.ModelUnavailable
	case "service_tier_capacity_exceeded":
		return interlock.Overloaded
	case "rate_limited", "rate_limit_error":
		return interlock.RateLimited
	case "authentication_error":
		return interlock.UpstreamAuth
	}
	switch status {
	case 400, 422:
		return invalid(message)
	case 401, 402:
		return interlock.UpstreamAuth
	case 403:
		return forbidden(message)
	case 429:
		if interlock.Says(message, "capacity exceeded") { // of the provider for that model, not of the account
			return interlock.Overloaded
		}
		return interlock.RateLimited
	case 503, 529:
		return interlock.Overloaded
	case 0:
		if hasPrefix(kind, "invalid_") {
			return invalid(message)
		}
		return interlock.ServerError
	}
	return ""
}

// invalid tells apart what the provider calls an invalid request and says in words only.
func invalid(message string) string {
	switch {
	case interlock.Says(message, "too large for model with", "maximum context length"):
		return interlock.ContextOverflow
	case interlock.Says(message, "invalid model:"):
		return interlock.ModelUnavailable
	}
	return interlock.ClientInvalid
}

// forbidden says whose matter a 403 is: a model that the account may not use, or the account.
// Anything else says nothing about the channel.
func forbidden(message string) string {
	switch {
	case interlock.Says(message, "access to this model", "access to the model", "access to model", "model is not available"):
		return interlock.ModelUnavailable
	case interlock.Says(message, "api key", "subscription", "workspace", "billing"):
		return interlock.UpstreamAuth
	}
	return ""
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }
