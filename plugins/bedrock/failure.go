package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// exception is what a frame reports that ends the stream; nil when it is an event.
func exception(f *interlock.Frame) *interlock.Failure {
	const prefix = "exception:"
	if !hasPrefix(f.Name, prefix) {
		return nil
	}
	root, _ := json.Parse(f.Data) // without its body it is an exception all the same
	failure := read(f.Name[len(prefix):], root)
	return &failure
}

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	root, _ := json.Parse(in.Body)
	kind := in.Get("x-amzn-errortype")
	if kind == "" {
		kind = kindOf(root)
	}
	f := read(kind, root)
	if f.Class == "" && in.Status == 429 {
		f.Class = interlock.RateLimited
	}
	f.Status = 0
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}

// kindOf is the exception's name as a body has it: under the names of AWS's protocols, or, from what
// stands between, as a type that ends like an exception's.
func kindOf(body json.Value) string {
	for _, key := range [...]string{"__type", "code"} {
		if kind := body.Get(key).String(); kind != "" {
			return kind
		}
	}
	const ending = "Exception"
	for _, key := range [...]string{"type", "Type"} {
		kind := body.Get(key).String()
		if name, _, _ := cut(kind, ':'); len(name) > len(ending) && name[len(name)-len(ending):] == ending {
			return kind
		}
	}
	return ""
}

// read makes a failure of the exception's name, which may have a namespace before it and a URL
// behind it, and of its body.
func read(kind string, body json.Value) interlock.Failure {
	kind, _, _ = cut(kind, ':')
	if _, after, ok := cut(kind, '#'); ok {
		kind = after
	}
	f := interlock.Failure{Type: string(append([]byte(nil), kind...))}
	for key, v := range body.Members() {
		switch string(key) {
		case "message", "Message":
			f.Message = v.String()
		case "originalMessage":
			if f.Message == "" {
				f.Message = v.String()
			}
		case "originalStatusCode":
			if n, ok := v.Uint(); ok && n >= 400 && n < 600 {
				f.Status = uint32(n)
			}
		}
	}
	f.Class = classOf(kind, &f)
	return f
}

// classOf reads the exception's name: in a stream it begins with a small letter.
func classOf(kind string, f *interlock.Failure) string {
	switch lowerFirst(kind) {
	case "throttlingException", "serviceQuotaExceededException", "tooManyRequestsException":
		return interlock.RateLimited
	case "serviceUnavailableException", "modelNotReadyException":
		return interlock.Overloaded
	case "internalServerException", "internalFailure", "modelErrorException", "modelStreamErrorException":
		switch f.Status {
		case 429:
			return interlock.RateLimited
		case 503, 529:
			return interlock.Overloaded
		}
		return interlock.ServerError
	case "modelTimeoutException":
		return interlock.Timeout
	case "resourceNotFoundException":
		return interlock.ModelUnavailable
	case "accessDeniedException":
		if interlock.Says(f.Message, "access to the model", "model access") {
			return interlock.ModelUnavailable
		}
		return interlock.UpstreamAuth
	case "unrecognizedClientException", "invalidSignatureException", "signatureDoesNotMatch",
		"expiredTokenException", "expiredToken", "incompleteSignature", "missingAuthenticationToken",
		"missingAuthenticationTokenException", "invalidClientTokenId", "notAuthorized", "optInRequired":
		return interlock.UpstreamAuth
	case "validationException":
		if class := invalid(f.Message); class != "" {
			return class
		}
		return interlock.ClientInvalid
	case "":
		return invalid(f.Message)
	}
	return ""
}

// invalid tells apart what the provider calls a ValidationException and says in words only.
func invalid(message string) string {
	switch {
	case interlock.Says(message, "input is too long", "input tokens exceeded", "prompt is too long",
		"exceeds the maximum context length", "exceed context limit", "maximum context length",
		"too many input tokens", "exceeds the model's maximum"):
		return interlock.ContextOverflow
	case interlock.Says(message, "model identifier is invalid", "on-demand throughput isn", "model is not supported in this region",
		"reached the end of its life"):
		return interlock.ModelUnavailable
	}
	return ""
}

// lowerByte is for ASCII only: package bytes brings Unicode's tables into a module.
func lowerByte(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	b := []byte(s)
	b[0] = lowerByte(b[0])
	return string(b)
}
