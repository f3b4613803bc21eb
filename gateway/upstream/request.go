package upstream

import (
	"fmt"
	"strconv"
)

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
func (r *Request) Check() error {
	if r.Method != "" && !isToken(r.Method) {
		return fmt.Errorf("%w: the method is not a token", ErrRequest)
	}
	if !isPath(r.Path) {
		return fmt.Errorf("%w: the path must start with a slash and hold only printable ASCII without blanks or '#'", ErrRequest)
	}
	hosts := 0
	for i := range r.Header {
		name := r.Header[i].Name
		switch {
		case !isToken(name):
			return fmt.Errorf("%w: the name of header field %d is not a token", ErrRequest, i+1)
		case isOwnField(name):
			return fmt.Errorf("%w: header %q is set by the transport alone", ErrRequest, name)
		case !isFieldValue(r.Header[i].Value):
			return fmt.Errorf("%w: header %q holds a control byte", ErrRequest, name)
		case isHost(name):
			hosts++
		}
	}
	if hosts > 1 {
		return fmt.Errorf("%w: header %q is given more than once", ErrRequest, "Host")
	}
	return nil
}

// headSize is an upper bound of what appendHead appends.
func (r *Request) headSize(t *Target) int {
	n := len(r.Method) + len(t.BasePath) + len(r.Path) + len(t.Query) + len(t.authority) + 128
	for i := range r.Header {
		n += len(r.Header[i].Name) + len(r.Header[i].Value) + len(": \r\n")
	}
	return n
}

// appendHead appends the request head, the blank line included. The request was checked.
func (r *Request) appendHead(b []byte, t *Target) []byte {
	method := r.Method
	if method == "" {
		method = "POST"
	}
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, t.BasePath...)
	b = append(b, r.Path...)
	if t.Query != "" {
		b = append(b, joint(r.Path))
		b = append(b, t.Query...)
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.host(t)...)
	b = append(b, "\r\n"...)
	for i := range r.Header {
		if f := &r.Header[i]; !isHost(f.Name) {
			b = append(b, f.Name...)
			b = append(b, ": "...)
			b = append(b, f.Value...)
			b = append(b, "\r\n"...)
		}
	}
	// A coded answer cannot be looked into event by event without decoding it.
	b = append(b, "Accept-Encoding: identity\r\n"...)
	if len(r.Body) > 0 || method != "GET" && method != "HEAD" && method != "DELETE" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

func (r *Request) host(t *Target) string {
	for i := range r.Header {
		if isHost(r.Header[i].Name) {
			return r.Header[i].Value
		}
	}
	return t.authority
}

// joint is the byte between a path and a further piece of query.
func joint(path string) byte {
	for i := range len(path) {
		if path[i] == '?' {
			return '&'
		}
	}
	return '?'
}

func isHost(name string) bool { return len(name) == 4 && equalFold(name, "host") }

// isOwnField reports whether only the transport may set that header: framing, coding, and
// what concerns one connection (RFC 9110, section 7.6.1).
func isOwnField(name string) bool {
	switch len(name) {
	case len("te"):
		return equalFold(name, "te")
	case len("expect"):
		return equalFold(name, "expect")
	case len("upgrade"): // and trailer
		return equalFold(name, "upgrade") || equalFold(name, "trailer")
	case len("connection"), len("content-length"): // and keep-alive
		return equalFold(name, "connection") || equalFold(name, "keep-alive") || equalFold(name, "content-length")
	case len("accept-encoding"):
		return equalFold(name, "accept-encoding")
	case len("proxy-connection"):
		return equalFold(name, "proxy-connection")
	case len("transfer-encoding"):
		return equalFold(name, "transfer-encoding")
	case len("proxy-authorization"):
		return equalFold(name, "proxy-authorization")
	}
	return false
}

// equalFold reports whether s is lower in any ASCII case.
func equalFold[T string | []byte](s T, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isToken[T string | []byte](s T) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// tokenByte holds RFC 9110's tchar.
var tokenByte = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-0x20] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func isPath(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return false
		}
	}
	return s != "" && s[0] == '/'
}
