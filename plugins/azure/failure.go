package azure

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	var f interlock.Failure
	if root, err := json.Parse(in.Body); err == nil {
		f = read(root)
	}
	f.Status = 0
	f.Class = believable(f.Class, in.Status)
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	if f.HasRetryAfter && f.RetryAfter == 0 {
		// It says 0 ms and a second at once: the longer of the two is meant.
		rest := interlock.Answer{Header: make([]interlock.Field, 0, len(in.Header))}
		for _, h := range in.Header {
			if h.Name != "retry-after-ms" {
				rest.Header = append(rest.Header, h)
			}
		}
		if ms, ok := rest.RetryAfter(c.Now); ok {
			f.RetryAfter = ms
		}
	}
	return f
}

// believable leaves a class that does not go with the answer's status to the status. Azure's codes
// about credentials, deployments, content and the context window are exact, whatever the status;
// the rest say no more than the status.
func believable(class string, status uint32) string {
	switch class {
	case interlock.RateLimited, interlock.Overloaded:
		if status != 429 && status < 500 {
			return ""
		}
	case interlock.ServerError, interlock.Timeout:
		if status < 500 && status != 408 {
			return ""
		}
	case interlock.ContentFiltered, interlock.ContextOverflow:
		if status >= 500 || status == 401 || status == 402 || status == 429 {
			return ""
		}
	}
	return class
}

// read makes a failure of a body or of an event:
//
//	{"error": {"code", "type", "message", "param", "status", "innererror": {"code"}}}
//	{"error": "text"}
//	{"statusCode": 429, "message"}, of Azure's API Management
//	{"type": "error", "code", "message", "param"}, an event of a response
func read(root json.Value) interlock.Failure {
	v := root.Get("error")
	if v.IsString() {
		return interlock.Failure{Message: v.String()}
	}
	if !v.IsObject() {
		v = root
	}
	return readError(v)
}

// readError makes a failure of the error object itself.
func readError(v json.Value) (f interlock.Failure) {
	inner := ""
	for key, v := range v.Members() {
		switch string(key) {
		case "code":
			f.Code = word(v)
		case "type":
			if f.Type = v.String(); f.Type == "error" {
				f.Type = ""
			}
		case "message":
			f.Message = v.String()
		case "param":
			f.Param = v.String()
		case "status", "statusCode":
			if n, ok := v.Uint(); ok && n >= 400 && n < 600 {
				f.Status = uint32(n)
			}
		case "innererror":
			inner = v.Get("code").String()
		}
	}
	if f.Status == 0 && len(f.Code) == 3 && (f.Code[0] == '4' || f.Code[0] == '5') {
		if n, ok := json.Value(f.Code).Uint(); ok { // the code is the status: "401"
			f.Status = uint32(n)
		}
	}
	for _, word := range [...]string{inner, f.Code, f.Type} {
		if class := classOf(word); class != "" && f.Class == "" {
			f.Class = class
		}
	}
	return f
}

// word is a string, or a number as it is written.
func word(v json.Value) string {
	if v.IsNumber() {
		return string(v)
	}
	return v.String()
}

// classOf reads Azure's words, which are OpenAI's (invalid_request_error), Azure's own
// (DeploymentNotFound) or the status as a text.
func classOf(word string) string {
	switch lower(word) {
	case "content_filter", "content_filter_error", "responsibleaipolicyviolation", "content_policy_violation",
		"invalid_prompt", "cyber_policy":
		return interlock.ContentFiltered
	case "context_length_exceeded", "context_window_exceeded", "prompt_too_long", "too_many_prompt_tokens":
		return interlock.ContextOverflow
	case "401", "unauthorized", "permissiondenied", "accessdenied", "authenticationfailed", "authenticationtypedisabled",
		"invalidauthenticationtoken", "invalid_api_key", "invalidapikey", "insufficient_quota", "authorizationfailed",
		"subscriptiondisabled", "billing_not_active", "billing_hard_limit_reached", "invalidsubscriptionkey", "authentication_error",
		"expiredauthenticationtoken", "invalidauthenticationtokentenant":
		return interlock.UpstreamAuth
	case "deploymentnotfound", "deploymentnotready", "model_not_found", "modelnotfound", "unknown_model", "unavailable_model", "invalid_model",
		"model_decommissioned", "modeldeprecated", "no_model_name", "model_not_available":
		return interlock.ModelUnavailable
	case "429", "ratelimitreached", "rate_limit_exceeded", "rate_limit_error", "too_many_requests", "toomanyrequests",
		"tokens_limit_reached":
		return interlock.RateLimited
	case "nocapacity", "no_capacity", "engineoverloaded", "engine_overloaded", "server_is_overloaded", "overloaded", "slow_down",
		"serverbusy":
		return interlock.Overloaded
	case "408", "504", "timeout", "requesttimeout", "request_timeout", "gatewaytimeout", "operationtimedout":
		return interlock.Timeout
	case "500", "502", "internalservererror", "internal_server_error", "server_error", "internalerror", "internal_error", "badgateway",
		"modelerror", "model_error":
		return interlock.ServerError
	}
	return ""
}

// lower is for ASCII only: package bytes brings Unicode's tables into a module.
func lower(s string) string {
	for i := range len(s) {
		if s[i]-'A' < 26 {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i]-'A' < 26 {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
