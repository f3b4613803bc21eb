package conformance

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// callContext is the context of a call.
type callContext struct {
	Endpoint  string `json:"endpoint"`
	Model     string `json:"model"`
	RequestID string `json:"request_id"`
	Now       uint64 `json:"now"`
	Stream    bool   `json:"stream"`
}

func defaultContext() callContext {
	return callContext{Endpoint: "chat_completions", Model: "model-1", RequestID: "req_fixture", Now: 1_800_000_000_000}
}

// encode is the context as the first field of an input. endpoint "" stands for none.
func (c callContext) encode(endpoint string) []byte {
	var b, w interlock.Writer
	b.Bool(c.Stream)
	b.U64(c.Now)
	b.Str(endpoint)
	b.Str(c.Model)
	b.Str(c.RequestID)
	w.Bytes(b)
	return w
}

func (c callContext) request(body []byte) []byte {
	w := interlock.Writer(c.encode(c.Endpoint))
	w.Bytes(body)
	return w
}

func (c callContext) answer(state string, a *providerAnswer) []byte {
	w := interlock.Writer(c.encode(c.Endpoint))
	w.Str(state)
	w.U32(a.status)
	w.U32(uint32(len(a.header)))
	for _, h := range a.header {
		w.Str(h.Name)
		w.Str(h.Value)
	}
	w.Bytes(a.body)
	return w
}

func appendFrames(w *interlock.Writer, frames []frame, ended bool) {
	w.Bool(ended)
	w.U32(uint32(len(frames)))
	for _, f := range frames {
		w.Str(f.name)
		w.Str(f.data)
	}
}

func (c callContext) events(state string, frames []frame, ended bool) []byte {
	w := interlock.Writer(c.encode(c.Endpoint))
	w.Str(state)
	appendFrames(&w, frames, ended)
	return w
}

// guard is the input of a guard's operation, up to what is looked at.
func (c callContext) guard(s *subject) interlock.Writer {
	var b interlock.Writer
	b.Str(s.Key)
	b.Bytes(s.Labels)
	b.Str(s.Alias)
	w := interlock.Writer(c.encode(c.Endpoint))
	w.Bytes(b)
	return w
}

type providerAnswer struct {
	status uint32
	header []interlock.Field
	body   []byte
}

type frame struct{ name, data string }

// providerRequest is the result of request.
type providerRequest struct {
	kind, framing             uint32
	method, path, contentType string
	header                    []interlock.Field
	state, body               string
}

func decodeRequest(out []byte) (*providerRequest, error) {
	r := interlock.NewReader(out)
	q := &providerRequest{kind: r.U32(), method: r.Str(), path: r.Str()}
	for n := r.Count(8); n > 0; n-- {
		q.header = append(q.header, interlock.Field{Name: r.Str(), Value: r.Str()})
	}
	q.contentType, q.framing, q.state, q.body = r.Str(), r.U32(), r.Str(), r.Str()
	if !r.OK() {
		return nil, errResult
	}
	return q, nil
}

func decodeFailure(r *interlock.Reader) *interlock.Failure {
	return &interlock.Failure{
		Class: r.Str(), Code: r.Str(), Type: r.Str(), Message: r.Str(), Param: r.Str(),
		Status: r.U32(), HasRetryAfter: r.U32()&1 != 0, RetryAfter: r.U64(),
	}
}

func decodeResponse(out []byte) (body string, f *interlock.Failure, err error) {
	r := interlock.NewReader(out)
	failed := r.U32()
	body = r.Str()
	if failed == 1 {
		f = decodeFailure(&r)
	}
	if !r.OK() || failed > 1 {
		return "", nil, errResult
	}
	return body, f, nil
}

// eventsResult is the result of events.
type eventsResult struct {
	done    bool
	failure *interlock.Failure
	state   string
	frames  []frame
}

func decodeEvents(out []byte) (*eventsResult, error) {
	r := interlock.NewReader(out)
	flags := r.U32()
	e := &eventsResult{done: flags&1 != 0, state: r.Str(), frames: decodeFrames(&r)}
	if flags&2 != 0 {
		e.failure = decodeFailure(&r)
	}
	if !r.OK() || flags > 3 {
		return nil, errResult
	}
	return e, nil
}

func decodeFrames(r *interlock.Reader) (list []frame) {
	for n := r.Count(8); n > 0; n-- {
		list = append(list, frame{r.Str(), r.Str()})
	}
	return list
}

// verdict is the result of a guard's operation.
type verdict struct {
	action          uint32
	reason, message string
	state, body     string
	frames          []frame
}

func decodeVerdict(out []byte, events bool) (*verdict, error) {
	r := interlock.NewReader(out)
	v := &verdict{action: r.U32(), reason: r.Str(), message: r.Str()}
	if events {
		v.state = r.Str()
		v.frames = decodeFrames(&r)
	} else {
		v.body = r.Str()
	}
	if !r.OK() {
		return nil, errResult
	}
	return v, nil
}
