package flow

import (
	"io"
	"time"

	"github.com/interlock-gateway/interlock/gateway/openai"
)

// Head is what the front knows of a request when its headers are in: the lookup of one
// header by its lower-case name, nil where it is absent. The bytes are valid until the
// request's Exchange is closed.
type Head interface{ Peek(name string) []byte }

// Field is one header of a Reply.
type Field struct{ Name, Value string }

// Reply is what the front writes. With Stream the body comes from Exchange.WriteTo after
// the head; otherwise Body is the whole body, valid until Exchange.Close.
type Reply struct {
	Status      int
	ContentType string
	Header      []Field
	Body        []byte
	Stream      bool
}

// A Caller is an authenticated caller's key in one generation.
type Caller struct{ in *Generation }

// Authenticate finds the caller by the key in the request's headers. It is cheap, does not
// depend on how much of a key is right, and runs before the body is read.
func (g *Gateway) Authenticate(h Head) (*Caller, *openai.Error) { panic("skeleton") }

// Begin starts the life of one request. The body must stay unchanged until Close.
func (g *Gateway) Begin(c *Caller, e openai.Endpoint, h Head, body []byte, received time.Time) *Exchange {
	panic("skeleton")
}

// Run drives the request until there is something to write and returns it. It blocks; it is
// called once, from the goroutine that owns the connection.
func (x *Exchange) Run() *Reply { panic("skeleton") }

// WriteTo pumps the rest of a Reply with Stream, in the connection's own goroutine. Each
// Write is one flushed chunk. An error means that the connection must be dropped without a
// clean end.
func (x *Exchange) WriteTo(w io.Writer) (int64, error) { panic("skeleton") }

// PeerGone tells the exchange that its caller has left: the running upstream call is aborted
// and no later attempt starts. Any goroutine, at any time before Close returns; it never blocks.
func (x *Exchange) PeerGone() { panic("skeleton") }

// Close ends the exchange and releases everything it holds. The front calls it exactly once,
// after the last byte was written or could not be.
func (x *Exchange) Close() { panic("skeleton") }

// Models answers GET /v1/models, Model GET /v1/models/{id}, RequestByID
// GET /interlock/v1/requests/{id}: what this caller may see.
func (g *Gateway) Models(c *Caller) *Reply                 { panic("skeleton") }
func (g *Gateway) Model(c *Caller, id string) *Reply       { panic("skeleton") }
func (g *Gateway) RequestByID(c *Caller, id string) *Reply { panic("skeleton") }

// DrainNow ends every request that is still running, streams with an error event.
func (g *Gateway) DrainNow() { panic("skeleton") }

type (
	// Gateway is the data plane behind the front.
	Gateway struct{}
	// Generation is one immutable snapshot of config and policy.
	Generation struct{}
	// Exchange is one request's life.
	Exchange struct{}
)
