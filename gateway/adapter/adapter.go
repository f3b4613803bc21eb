package adapter

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// Adapter translates for one kind of provider. It is safe for concurrent use.
type Adapter interface {
	// Name is the adapter's name in the configuration ("openai").
	Name() string
	// Serves says whether the provider has the endpoint, natively or by translation.
	Serves(openai.Endpoint) bool
	// Request appends the provider's body for a call to dst.
	Request(dst []byte, c *Call) (Shaped, error)
	// Response turns a whole answer with a 2xx status into OpenAI's format. It returns body
	// itself where nothing is to translate, else bytes appended to dst.
	Response(dst []byte, c *Call, body []byte) ([]byte, error)
	// Events returns a decoder for one streamed answer, to be released after use.
	Events(c *Call) Events
	// Classify reads an answer with an error status. body may be cut short.
	Classify(status int, h Headers, body []byte) Failure
	// ClassifyError reads an error that came inside an answer with a 2xx status.
	ClassifyError(openai.UpstreamError) Failure
}

// Call is what an adapter knows of one attempt.
type Call struct {
	Request  *openai.Request // facts of the caller's body
	Body     []byte          // the caller's body: not to be changed
	Model    string          // the upstream's name of the model
	AskUsage bool            // ask for a stream's usage though the caller did not
}

// Shaped is the request as the provider wants it.
type Shaped struct {
	Body        []byte
	Path        string // below the base URL, "/chat/completions"
	ContentType string
	Header      []Field // further headers; never a credential
}

// Field is one header.
type Field struct{ Name, Value string }

// Events turns the bytes of a streamed answer into OpenAI's events. *openai.Splitter is one.
type Events interface {
	// Feed hands over the next bytes, which stay unchanged until Next has returned false.
	Feed([]byte)
	// Next fills ev with the next whole event; false when more bytes are needed.
	Next(ev *openai.Event) (bool, error)
	// Flush fills ev with what is left when the body has ended.
	Flush(ev *openai.Event) (bool, error)
	// Release gives the decoder back.
	Release()
}

// Headers looks up a header of an answer by its lower-case name; nil when absent.
type Headers interface{ Header(name string) []byte }

// Failure is what a provider said went wrong, in our words.
type Failure struct {
	Class         failure.Class // None: the code says nothing; the policy goes by the status
	Error         openai.UpstreamError
	RetryAfter    time.Duration
	HasRetryAfter bool
}
