package interlock

// The codes of an Error.
const (
	CodeBadRequest           = "bad_request"
	CodeUnsupportedParameter = "unsupported_parameter"
	CodeUnsupported          = "unsupported"
	CodeUpstreamMalformed    = "upstream_malformed"
	CodeConfig               = "config"
	CodeInternal             = "internal"
)

// Error is what a plugin answers instead of a result. Message reaches the caller for the codes
// bad_request and unsupported_parameter: it must hold no secret and nothing of the provider's.
type Error struct {
	Code    string
	Message string
	Param   string // what part of the body is meant: "messages[2].content[0].type"
	Status  uint32 // 0 = the code's own
}

// Error is the code and the message.
func (e *Error) Error() string {
	if e.Param != "" {
		return e.Code + ": " + e.Param + ": " + e.Message
	}
	return e.Code + ": " + e.Message
}

// BadRequest says that the caller's body is wrong.
func BadRequest(message string) *Error { return &Error{Code: CodeBadRequest, Message: message} }

// BadParam says that the part of the caller's body that param names is wrong.
func BadParam(param, message string) *Error {
	return &Error{Code: CodeBadRequest, Param: param, Message: message}
}

// Unsupported says that the provider has nothing to which the parameter could be mapped. An empty
// message gets a default one.
func Unsupported(param, message string) *Error {
	if message == "" {
		message = "this model's provider has no equivalent for " + param
	}
	return &Error{Code: CodeUnsupportedParameter, Param: param, Message: message}
}

// Malformed says that what the provider sent is not what it should be.
func Malformed(message string) *Error { return &Error{Code: CodeUpstreamMalformed, Message: message} }

// Config says what is wrong with the plugin's configuration.
func Config(message string) *Error { return &Error{Code: CodeConfig, Message: message} }

// Internal says that the plugin itself is at fault.
func Internal(message string) *Error { return &Error{Code: CodeInternal, Message: message} }

// The classes that a Failure may have. An empty one leaves the matter to the status.
const (
	ClientInvalid    = "client_invalid"
	ContextOverflow  = "context_overflow"
	ContentFiltered  = "content_filtered"
	RateLimited      = "rate_limited"
	Overloaded       = "overloaded"
	ServerError      = "server_error"
	Timeout          = "timeout"
	UpstreamAuth     = "upstream_auth"
	ModelUnavailable = "model_unavailable"
	MalformedAnswer  = "malformed_answer"
)

// Failure is what a provider says went wrong. All but Class is in the provider's words, decoded;
// what it did not say stays empty.
type Failure struct {
	Class         string // one of the constants, or empty
	Code          string
	Type          string
	Message       string
	Param         string
	Status        uint32 // only where an error inside an answer with status 2xx names one
	RetryAfter    uint64 // milliseconds
	HasRetryAfter bool
}

// Error is the class and the message. A *Failure as the error of Response or Events is the
// provider's failure, not the plugin's.
func (f *Failure) Error() string { return f.Class + ": " + f.Message }

func (f *Failure) write(w *Writer) {
	w.Str(f.Class)
	w.Str(f.Code)
	w.Str(f.Type)
	w.Str(f.Message)
	w.Str(f.Param)
	w.U32(f.Status)
	w.Bool(f.HasRetryAfter)
	w.U64(f.RetryAfter)
}
