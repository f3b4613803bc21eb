package gemini

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	root, _ := json.Parse(in.Body)
	if root.IsArray() { // of a stream that is framed as an array
		for first := range root.Items() {
			root = first
			break
		}
	}
	f := failure(root.Get("error"), in.Status)
	f.Status = 0
	if ms, ok := in.RetryAfter(c.Now); ok {
		f.RetryAfter, f.HasRetryAfter = ms, true
	}
	return f
}

// failure reads a google.rpc.Status: {code, message, status, details}. status is the answer's, 0
// where it was 200.
func failure(v json.Value, status uint32) interlock.Failure {
	f := interlock.Failure{Message: v.String()} // some proxies say no more
	reason := ""
	for key, v := range v.Members() {
		switch string(key) {
		case "code":
			if n, ok := v.Uint(); ok && n >= 400 && n < 600 {
				f.Status = uint32(n)
			}
			if v.IsNumber() {
				f.Code = string(v)
			}
		case "message":
			f.Message = v.String()
		case "status":
			f.Type = v.String()
		case "details":
			for d := range v.Items() {
				reason = detail(&f, d, reason)
			}
		}
	}
	if reason != "" {
		f.Code = reason
	}
	if status == 0 {
		status = f.Status
	}
	f.Class = classOf(f.Type, reason, f.Message, status)
	return f
}

// detail reads a google.rpc.ErrorInfo or RetryInfo.
func detail(f *interlock.Failure, d json.Value, reason string) string {
	kind := d.Get("@type").Text()
	switch {
	case bytes.HasSuffix(kind, []byte("google.rpc.ErrorInfo")):
		if r := d.Get("reason").String(); r != "" {
			reason = r
		}
	case bytes.HasSuffix(kind, []byte("google.rpc.RetryInfo")):
		if ms, ok := duration(d.Get("retryDelay").Text()); ok {
			f.RetryAfter, f.HasRetryAfter = ms, true
		}
	}
	return reason
}

// duration reads "34.4s" as milliseconds, rounded up.
func duration(text []byte) (ms uint64, ok bool) {
	const most = 1 << 40
	digits, isSeconds := bytes.CutSuffix(text, []byte{'s'})
	if !isSeconds || len(digits) == 0 || !isDigit(digits[0]) {
		return 0, false
	}
	places := -1 // behind the point
	more := false
	for _, c := range digits {
		switch {
		case c == '.' && places < 0:
			places = 0
		case !isDigit(c):
			return 0, false
		case places < 0:
			if ms = ms*10 + uint64(c-'0')*1000; ms > most {
				return 0, false
			}
		default:
			switch places {
			case 0:
				ms += uint64(c-'0') * 100
			case 1:
				ms += uint64(c-'0') * 10
			case 2:
				ms += uint64(c - '0')
			default:
				more = more || c != '0'
			}
			places++
		}
	}
	if more {
		ms++
	}
	return ms, true
}

// wordClass is what a word of the provider's means.
type wordClass struct{ word, class string }

func find(list []wordClass, word string) string {
	for i := range list {
		if list[i].word == word {
			return list[i].class
		}
	}
	return ""
}

// reasonClasses are by the reason of an ErrorInfo.
var reasonClasses = [...]wordClass{
	{"API_KEY_INVALID", interlock.UpstreamAuth},
	{"API_KEY_SERVICE_BLOCKED", interlock.UpstreamAuth},
	{"API_KEY_HTTP_REFERRER_BLOCKED", interlock.UpstreamAuth},
	{"API_KEY_IP_ADDRESS_BLOCKED", interlock.UpstreamAuth},
	{"SERVICE_DISABLED", interlock.UpstreamAuth},
	{"BILLING_DISABLED", interlock.UpstreamAuth},
	{"CONSUMER_INVALID", interlock.UpstreamAuth},
	{"CONSUMER_SUSPENDED", interlock.UpstreamAuth},
	{"ACCESS_TOKEN_EXPIRED", interlock.UpstreamAuth},
	{"ACCESS_TOKEN_SCOPE_INSUFFICIENT", interlock.UpstreamAuth},
	{"ACCESS_TOKEN_TYPE_UNSUPPORTED", interlock.UpstreamAuth},
	{"ACCOUNT_STATE_INVALID", interlock.UpstreamAuth},
	{"CREDENTIALS_MISSING", interlock.UpstreamAuth},
	{"USER_PROJECT_DENIED", interlock.UpstreamAuth},
	{"IAM_PERMISSION_DENIED", interlock.UpstreamAuth},
	{"RATE_LIMIT_EXCEEDED", interlock.RateLimited},
}

// codeClasses are by the canonical code, where it stands for one class.
var codeClasses = [...]wordClass{
	{"RESOURCE_EXHAUSTED", interlock.RateLimited},
	{"UNAVAILABLE", interlock.Overloaded},
	{"DEADLINE_EXCEEDED", interlock.Timeout},
	{"INTERNAL", interlock.ServerError},
	{"UNKNOWN", interlock.ServerError},
	{"DATA_LOSS", interlock.ServerError},
	{"ABORTED", interlock.ServerError},
	{"CANCELLED", interlock.ServerError},
	{"UNAUTHENTICATED", interlock.UpstreamAuth},
	{"PERMISSION_DENIED", interlock.UpstreamAuth},
	{"UNIMPLEMENTED", interlock.ModelUnavailable},
}

// classOf goes by the canonical code, and by the words only where one code stands for several
// classes.
func classOf(kind, reason, message string, status uint32) string {
	if class := find(reasonClasses[:], reason); class != "" {
		return class
	}
	if class := find(codeClasses[:], kind); class != "" {
		return class
	}
	switch kind {
	case "NOT_FOUND":
		if interlock.Says(message, "models/", "model ") {
			return interlock.ModelUnavailable
		}
		return interlock.ClientInvalid
	case "FAILED_PRECONDITION":
		if interlock.Says(message, "user location", "billing", "free tier is not available") {
			return interlock.UpstreamAuth
		}
		return interlock.ClientInvalid
	case "INVALID_ARGUMENT", "OUT_OF_RANGE":
		return invalid(message)
	case "":
		switch status {
		case 400:
			return invalid(message)
		case 429:
			return interlock.RateLimited
		case 503, 529:
			return interlock.Overloaded
		case 504:
			return interlock.Timeout
		}
		if status == 0 {
			return interlock.ServerError // inside an answer, and without any code
		}
	}
	return ""
}

// invalid tells apart what the provider calls an invalid argument and says in words only.
func invalid(message string) string {
	switch {
	case interlock.Says(message, "api key not valid", "api key expired", "api key not found"):
		return interlock.UpstreamAuth
	case interlock.Says(message, "exceeds the maximum number of tokens", "token count exceeds", "input context is too long",
		"exceeds the maximum number of input tokens", "maximum context length"):
		return interlock.ContextOverflow
	case interlock.Says(message, "user location is not supported"):
		return interlock.UpstreamAuth
	}
	return interlock.ClientInvalid
}
