package adapter

import (
	"errors"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
)

// Adapter translates for one kind of provider. It is safe for concurrent use.
type Adapter interface {
	// Name is the adapter's name in the configuration ("openai", "plugin:anthropic").
	Name() string
	// Serves says whether the provider has the endpoint, natively or by translation.
	Serves(openai.Endpoint) bool
	// Request appends the provider's body for a call to dst. The error is a *Refusal where the
	// request itself is at fault, else a *Broken.
	Request(dst []byte, c *Call) (Shaped, error)
	// Streams says whether an answer of that content type comes in events.
	Streams(c *Call, contentType []byte) bool
	// Response turns a whole answer with a 2xx status into OpenAI's format. It returns body
	// itself where nothing is to translate, else bytes appended to dst. The error is a *Failed
	// where the provider reports a failure inside, a *Broken where the adapter itself failed;
	// any other means that the answer is not in the provider's format.
	Response(dst []byte, c *Call, a Answer, body []byte) ([]byte, error)
	// Events returns a decoder for one streamed answer, to be released after use.
	Events(c *Call) Events
	// Classify reads an answer with an error status. body may be cut short.
	Classify(c *Call, a Answer, body []byte) Failure
	// ClassifyError reads an error in OpenAI's format that came inside an answer with a 2xx
	// status.
	ClassifyError(openai.UpstreamError) Failure
}

// Call is what an adapter knows of one attempt. It belongs to one goroutine; Release it.
type Call struct {
	Request  *openai.Request // facts of the caller's body
	Body     []byte          // the caller's body: not to be changed
	Model    string          // the upstream's name of the model
	AskUsage bool            // ask for a stream's usage though the caller did not
	ID       string          // of the attempt
	Now      time.Time       // when it began
	// Deadline and Gone bound the wait for a plugin's instance: until when, and until it is
	// closed. Zero and nil: they do not.
	Deadline time.Time
	Gone     <-chan struct{}

	session *session // of a translating adapter: what the request left for the answer
}

// Release gives back what adapters keep with the call, and empties it.
func (c *Call) Release() {
	if c.session != nil {
		c.session.release()
	}
	*c = Call{}
}

// Shaped is the request as the provider wants it.
type Shaped struct {
	Method      string // "" is POST
	Body        []byte
	Path        string // below the base URL, "/chat/completions"; may carry a query
	ContentType string
	Accept      string  // what a stream may come in; "" is text/event-stream
	Header      []Field // further headers; never a credential
}

// Field is one header.
type Field struct{ Name, Value string }

// Events turns the bytes of a streamed answer into OpenAI's events. *openai.Splitter is one.
type Events interface {
	// Feed hands over the next bytes, which stay unchanged until Next has returned false.
	Feed([]byte)
	// Next fills ev with the next whole event; false when more bytes are needed. The errors are
	// those of Adapter.Response.
	Next(ev *openai.Event) (bool, error)
	// Flush fills ev with the next of what is left when the body has ended.
	Flush(ev *openai.Event) (bool, error)
	// Release gives the decoder back.
	Release()
}

// Answer is the head of a provider's answer.
type Answer interface {
	Status() int
	// Header looks a header up by its lower-case name; nil when absent.
	Header(name string) []byte
}

// Refusal says that the caller's request cannot be carried to this provider.
type Refusal struct {
	Code, Message, Param string
	Status               int // 0: the code's own, 400
}

func (e *Refusal) Error() string { return e.Message }

// Failed is a failure that the provider reported inside an answer with a 2xx status.
type Failed struct{ Failure }

func (e *Failed) Error() string { return "the provider reported a failure: " + e.Class.String() }

// Broken says that the adapter itself failed: a plugin that trapped, spun or answered with
// what the ABI does not allow.
type Broken struct{ Err error }

func (e *Broken) Error() string { return e.Err.Error() }

func (e *Broken) Unwrap() error { return e.Err }

// Passing says that the adapter may work the next time: there was no instance of its plugin, or
// it was stopped by the clock.
func (e *Broken) Passing() bool {
	f, ok := errors.AsType[*wasm.Failure](e.Err)
	return ok && (f.Reason == wasm.Busy || f.Reason == wasm.NotStart || f.Reason == wasm.Killed || f.Reason == wasm.Closed || f.Reason == wasm.Cancelled)
}

// Failure is what a provider said went wrong, in our words.
type Failure struct {
	Class         failure.Class // None: the code says nothing; the policy goes by the status
	Error         openai.UpstreamError
	RetryAfter    time.Duration
	HasRetryAfter bool
}
