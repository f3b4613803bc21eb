package downstream

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/openai"
)

// How much of a refused body is read on before the connection is closed. A stranger gets
// little; a caller with a key who sends too much should see why.
var (
	strangerLinger = linger{bytes: 1 << 20, time: time.Second}
	callerLinger   = linger{bytes: 64 << 20, time: 5 * time.Second}
)

// refusal is an answer of the front's own.
type refusal struct {
	openai.Error
	allow  string // the methods allowed, with a 405
	closes bool   // the connection cannot or shall not be used again
	linger linger // with closes
}

func refusing(c openai.Code, status int, message string) *refusal {
	r := &refusal{Error: *openai.NewError(c, message)}
	if status != 0 {
		r.Status = status
	}
	return r
}

func (r *refusal) closing(l linger) *refusal {
	r.closes, r.linger = true, l
	return r
}

func malformed(f flaw) *refusal {
	return refusing(openai.InvalidRequest, 400, "The request is not well-formed HTTP: "+string(f)+".").closing(strangerLinger)
}

func tooLarge(limit int64) *refusal {
	return refusing(openai.RequestTooLarge, 0,
		"The request's body is larger than "+strconv.FormatInt(limit, 10)+" bytes.").closing(callerLinger)
}

func busy() *refusal {
	r := refusing(openai.GatewayBusy, 0, "Too many request bodies are in flight.").closing(callerLinger)
	r.ShouldRetry, r.HasRetryAfter, r.RetryAfter = true, true, time.Second
	return r
}

func shuttingDown() *refusal {
	r := refusing(openai.GatewayShutdown, 0, "The gateway is shutting down.").closing(callerLinger)
	r.ShouldRetry, r.HasRetryAfter, r.RetryAfter = true, true, time.Second
	return r
}

// refuse makes a refusal the response.
func (f *Front) refuse(ctx *fasthttp.RequestCtx, e openai.Endpoint, r *refusal) {
	f.options.Metrics.CountRefused(e.String())
	r.RequestID = newRequestID()
	if r.Terminal == "" {
		r.Terminal = "policy_stop"
	}
	h := &ctx.Response.Header
	ctx.Response.SetStatusCode(r.Status)
	h.SetContentType(jsonType)
	h.Set(requestIDHeader, r.RequestID)
	if theirs := ctx.Request.Header.Peek(requestIDHeader); correlates(theirs) {
		h.SetBytesV("interlock-correlation-id", theirs)
	}
	h.Set("x-should-retry", strconv.FormatBool(r.ShouldRetry))
	if r.HasRetryAfter {
		h.Set("retry-after", strconv.FormatInt(openai.RetryAfterSeconds(r.RetryAfter), 10))
		h.Set("retry-after-ms", strconv.FormatInt(openai.RetryAfterMillis(r.RetryAfter), 10))
	}
	if r.allow != "" {
		h.Set("allow", r.allow)
	}
	if r.Status == fasthttp.StatusUnauthorized {
		h.Set("www-authenticate", "Bearer")
	}
	ctx.Response.SetBodyRaw(r.AppendJSON(nil))
	// What is left of the body would have to be read before the next request.
	if r.closes || unread(ctx) {
		if r.linger.bytes == 0 {
			r.linger = callerLinger
		}
		leaveUnread(ctx, r.linger)
	}
}

// correlates says whether a caller's own request ID can be given back.
func correlates(id []byte) bool {
	for _, c := range id {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return len(id) > 0 && len(id) <= 128
}

// leaveUnread closes the connection after the answer, in a way that lets the caller see it.
func leaveUnread(ctx *fasthttp.RequestCtx, l linger) {
	ctx.SetConnectionClose()
	if s := socketOf(ctx.Conn()); s != nil {
		s.lingerFor(l)
	}
}

// unread says whether a request has a body that nobody has read.
func unread(ctx *fasthttp.RequestCtx) bool {
	return ctx.Request.Header.ContentLength() != 0 && ctx.Request.IsBodyStream()
}

// broken answers what the HTTP library could not read. By then the request may be anything.
func (f *Front) broken(ctx *fasthttp.RequestCtx, err error) {
	defer f.rescue(ctx)
	if f.silent(ctx, err) {
		_ = ctx.Conn().Close()
		return
	}
	var small *fasthttp.ErrSmallBuffer
	switch {
	case timedOut(err):
		f.refuse(ctx, openai.NoEndpoint, refusing(openai.InvalidRequest, fasthttp.StatusRequestTimeout,
			"The request did not arrive in time.").closing(strangerLinger))
	case errors.As(err, &small):
		f.refuse(ctx, openai.NoEndpoint, refusing(openai.RequestTooLarge, fasthttp.StatusRequestHeaderFieldsTooLarge,
			fmt.Sprintf("The request's headers are larger than %d bytes.", headBuffer)).closing(strangerLinger))
	default:
		f.refuse(ctx, openai.NoEndpoint, malformed("it cannot be parsed"))
	}
}

// silent says whether there is nobody to answer: nothing was sent on a new connection, the
// caller has gone, or TLS was never agreed on.
func (f *Front) silent(ctx *fasthttp.RequestCtx, err error) bool {
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		if record.Conn != nil { // plain HTTP on a TLS port
			_, _ = record.Conn.Write([]byte("HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\n\r\nThis port speaks HTTPS.\n"))
		}
		return true
	}
	if _, nothingRead := err.(net.Error); nothingRead { //nolint:errorlint // wrapped once a byte has come
		return true
	}
	return hungUp(err)
}

// rescue answers 500 for a panic, which the HTTP library would let kill the process. What the
// panic says may hold a caller's text: the log gets its type and the stack.
func (f *Front) rescue(ctx *fasthttp.RequestCtx) {
	if v := recover(); v != nil {
		f.fault(ctx, v)
	}
}

func (f *Front) fault(ctx *fasthttp.RequestCtx, v any) {
	f.panicked(v)
	ctx.Response.Reset()
	f.refuse(ctx, openai.NoEndpoint, refusing(openai.InternalError, 0, "The gateway has met a fault of its own.").closing(callerLinger))
}

func (f *Front) panicked(v any) {
	what := fmt.Sprintf("%T", v)
	var e runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &e) {
		what = e.Error()
	}
	f.options.Log.Error("panic", "what", what, "stack", string(bytes.TrimSpace(debug.Stack())))
}

const (
	jsonType        = "application/json"
	requestIDHeader = "x-request-id"
)

// newRequestID makes an ID for what never became a request of package flow.
func newRequestID() string { return "req_" + ulid.Make().String() }
