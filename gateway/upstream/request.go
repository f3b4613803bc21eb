package upstream

// Field is one header field. Names are sent as given.
type Field struct{ Name, Value string }

// Request is what is sent. The call keeps references to everything in it until
// [Call.Release] returns; nothing in it is changed.
type Request struct {
	// Method is the HTTP method; "" means POST.
	Method string
	// Path is joined to the base path of the target and may carry a query: "/chat/completions".
	Path string
	// Header holds the fields to send. Content-Length, Accept-Encoding and everything about
	// the connection are the transport's own and are refused here; a Host replaces the target's.
	Header []Field
	// Body is sent whole, with its length.
	Body []byte
	// MaxBody limits the answer's body, in decoded bytes; past it the exchange fails as
	// Malformed. 0 means no limit.
	MaxBody int64
}

// Check reports why the request cannot be written as HTTP/1.1; the error wraps [ErrRequest]
// and names the part, never its value.
func (r *Request) Check() error { panic("upstream: not written yet") }
