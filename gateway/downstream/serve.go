package downstream

import (
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// serve is called for each request whose head is in, its body still on the wire.
func (f *Front) serve(ctx *fasthttp.RequestCtx) {
	defer f.rescue(ctx)
	// Without a write deadline of the handler's an answer would wait in the connection's
	// buffer for as long as a pipelined request runs. It costs nothing: see socket.
	_ = ctx.SetWriteDeadline(time.Time{})
	if f.draining.Load() {
		ctx.SetConnectionClose()
	}
	t, caller, refused := f.admit(&ctx.Request.Header, passed(&ctx.Request.Header))
	if refused != nil {
		f.refuse(ctx, t.endpoint, refused)
		return
	}
	switch t.operation {
	case call:
		f.call(ctx, caller, t.endpoint)
	case document:
		reply(ctx, &flow.Reply{Status: fasthttp.StatusOK, ContentType: jsonType, Body: f.options.OpenAPI})
	default:
		f.look(ctx, caller, t)
	}
}

// early is called with a head before any of its body is read. The HTTP library would wait for
// a body's first byte before it calls serve; for a request that will be refused it must not,
// so the body's length is hidden from it. Serve then finds the same refusal, and closes.
func (f *Front) early(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if h.ContentLength() <= 0 {
		return c
	}
	pass := false
	defer func() {
		if v := recover(); v != nil {
			f.panicked(v)
		}
		if !pass {
			h.SetContentLength(chunked)
		}
	}()
	_, _, refused := f.admit(h, false)
	pass = refused == nil
	return c
}

// passed says whether early has looked at a head and found nothing wrong with it.
func passed(h *fasthttp.RequestHeader) bool { return h.ContentLength() > 0 }

// expect answers "Expect: 100-continue", before the caller sends its body: 100 only for a
// request that would be served.
func (f *Front) expect(ctx *fasthttp.RequestCtx) (status int) {
	defer func() {
		if v := recover(); v != nil {
			f.fault(ctx, v)
			status = fasthttp.StatusInternalServerError
		}
	}()
	t, _, refused := f.admit(&ctx.Request.Header, passed(&ctx.Request.Header))
	if refused == nil {
		return fasthttp.StatusContinue
	}
	f.refuse(ctx, t.endpoint, refused.closing(refused.linger))
	return refused.Status
}

// admit decides on a head alone. One that has passed is not inspected again; who sent it is
// looked up anew.
func (f *Front) admit(h *fasthttp.RequestHeader, passed bool) (target, *flow.Caller, *refusal) {
	var length int64
	if !passed {
		var flaw flaw
		if length, flaw = inspect(h.Protocol(), h.RawHeaders()); flaw != "" {
			return target{}, nil, malformed(flaw)
		}
	}
	t := locate(h.RequestURI())
	if t.operation == document {
		if f.options.OpenAPI == nil {
			return t, nil, notFound()
		}
		return t, nil, permitted(t, h.Method())
	}
	caller, err := f.gateway.Authenticate(h)
	if err != nil {
		r := &refusal{Error: *err}
		return t, nil, r.closing(strangerLinger)
	}
	if t.operation == unknown {
		return t, nil, notFound()
	}
	if r := permitted(t, h.Method()); r != nil {
		return t, nil, r
	}
	if f.ending.Load() {
		return t, nil, shuttingDown()
	}
	if t.operation == call && length > f.options.MaxRequestBody {
		return t, nil, tooLarge(f.options.MaxRequestBody)
	}
	return t, caller, nil
}

func notFound() *refusal { return refusing(openai.NotFound, 0, "There is nothing at this path.") }

func permitted(t target, method []byte) *refusal {
	if t.operation.permits(method) {
		return nil
	}
	allow := t.operation.allow()
	r := refusing(openai.InvalidRequest, fasthttp.StatusMethodNotAllowed, "This path allows "+allow+".")
	r.allow = allow
	return r
}

// look answers what needs no exchange.
func (f *Front) look(ctx *fasthttp.RequestCtx, c *flow.Caller, t target) {
	if t.operation == listModels {
		reply(ctx, f.gateway.Models(c))
		return
	}
	id, ok := t.name()
	if !ok {
		f.refuse(ctx, t.endpoint, notFound())
		return
	}
	find := f.gateway.RequestByID
	if t.operation == oneModel {
		find = f.gateway.Model
	}
	found, err := find(c, id)
	if err != nil {
		f.refuse(ctx, t.endpoint, &refusal{Error: *err})
		return
	}
	reply(ctx, found)
}

// reply makes a whole reply the response; its body is copied.
func reply(ctx *fasthttp.RequestCtx, r *flow.Reply) {
	respond(ctx, r)
	ctx.Response.SetBody(r.Body)
	if unread(ctx) { // a GET with a body that nobody wants
		leaveUnread(ctx, callerLinger)
	}
}

// respond makes a reply's head the response's.
func respond(ctx *fasthttp.RequestCtx, r *flow.Reply) {
	ctx.Response.SetStatusCode(r.Status)
	h := &ctx.Response.Header
	fields(r, func(name, value string) { h.Set(name, value) })
}

// fields lists a reply's headers.
func fields(r *flow.Reply, set func(name, value string)) {
	set("content-type", r.ContentType)
	named := false
	for i := range r.Header {
		set(r.Header[i].Name, r.Header[i].Value)
		named = named || strings.EqualFold(r.Header[i].Name, requestIDHeader)
	}
	if !named {
		set(requestIDHeader, newRequestID())
	}
	if r.Stream {
		set("cache-control", "no-cache")
		set("x-accel-buffering", "no")
	}
}

// call runs an exchange.
func (f *Front) call(ctx *fasthttp.RequestCtx, c *flow.Caller, e openai.Endpoint) {
	received := ctx.Time()
	a := f.begin(ctx)
	handed := false // to the HTTP library, which closes it
	defer func() {
		if !handed {
			a.finish()
		}
	}()
	if err := f.receive(ctx, a); err != nil {
		f.unreadable(ctx, e, err)
		return
	}
	a.head = headOf(&ctx.Request.Header)
	a.run = f.gateway.Begin(c, e, &a.head, a.upload.bytes, received)
	a.arm(ctx)
	a.reply = a.run.Run()
	if a.reply == nil { // the caller has left
		vanish(ctx)
		return
	}
	respond(ctx, a.reply)
	if !a.reply.Stream {
		a.upload.give(&f.bodies)
		ctx.Response.SetBodyStream(a, len(a.reply.Body))
		handed = true
		return
	}
	handed = true
	if ctx.Request.Header.IsHTTP11() {
		ctx.Response.SetBodyStream(a, -1)
		return
	}
	streamPlain(ctx, a)
}

// receive reads the body, within its own time.
func (f *Front) receive(ctx *fasthttp.RequestCtx, a *answer) error {
	stream := ctx.RequestBodyStream()
	if stream == nil { // a POST without a body
		return nil
	}
	if err := ctx.Conn().SetReadDeadline(time.Now().Add(f.options.ReadBodyTimeout)); err != nil {
		return err
	}
	return a.upload.read(stream, int64(ctx.Request.Header.ContentLength()), f.options.MaxRequestBody, &f.bodies)
}

// unreadable answers for a body that could not be read.
func (f *Front) unreadable(ctx *fasthttp.RequestCtx, e openai.Endpoint, err error) {
	switch {
	case errors.Is(err, errTooLarge):
		f.refuse(ctx, e, tooLarge(f.options.MaxRequestBody))
	case errors.Is(err, errBusy):
		f.refuse(ctx, e, busy())
	case timedOut(err):
		f.refuse(ctx, e, refusing(openai.InvalidRequest, fasthttp.StatusRequestTimeout,
			"The request's body did not arrive in time.").closing(strangerLinger))
	case hungUp(err):
		vanish(ctx)
	default:
		f.refuse(ctx, e, malformed("its body is cut into broken chunks"))
	}
}

// statusLeft is what a caller that has left would have got; it is never written.
const statusLeft = 499

// vanish gives up a connection whose caller has left.
func vanish(ctx *fasthttp.RequestCtx) {
	ctx.Response.SetStatusCode(statusLeft)
	ctx.SetConnectionClose()
	if s := socketOf(ctx.Conn()); s != nil {
		s.cut()
	}
}
