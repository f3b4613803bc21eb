package interlock

// The operations of the ABI.
const (
	OpConfigure uint32 = iota
	OpRequest
	OpResponse
	OpEvents
	OpClassify
	OpDescribe
	OpGuardRequest
	OpGuardResponse
	OpGuardEvents
)

// ABI is the version of the ABI that this package speaks: major in the upper half, minor in the
// lower.
const ABI uint32 = 1 << 16

// MaxState is how large a state may be, in bytes.
const MaxState = 64 << 10

// Guest answers the ABI's calls for one plugin. It keeps its memory from call to call, so that a
// steady stream of events allocates nothing. One goroutine at a time.
type Guest struct {
	manifest   string
	maker      Maker
	plugin     Plugin
	configured bool

	call    Call
	answer  Answer
	subject Subject
	request Request
	events  Events
	verdict Verdict
	guarded EventsVerdict
	frames  []Frame
	header  []Field // of the answer handed in

	// What results are appended to. It stays the Guest's own: a plugin may return memory of its
	// own, or of its input, instead.
	headerRoom          []Field
	stateRoom, bodyRoom []byte
}

// room returns what the next result is appended to: more of it where this one did not fit.
func room[T any](have, result []T) []T {
	if cap(have) < len(result) {
		return make([]T, 0, len(result)+len(result)/4)
	}
	return have[:0]
}

// NewGuest returns a Guest that is not configured yet. manifest is what describe answers.
func NewGuest(manifest string, m Maker) *Guest { return &Guest{manifest: manifest, maker: m} }

// Call answers an operation: in is the input as the ABI has it, the result is appended to dst.
// failed says that it is an error. The bytes are those that the WebAssembly build gives. in and
// dst[:cap(dst)] must not overlap. A panic of the plugin passes through; the Guest is of no use
// afterwards.
func (g *Guest) Call(op uint32, in, dst []byte) (out []byte, failed bool) {
	w := Writer(dst)
	if err := g.run(op, in, &w); err != nil {
		w = w[:len(dst)]
		writeError(&w, err)
		return w, true
	}
	return w, false
}

func writeError(w *Writer, err error) {
	e, ok := err.(*Error) // nothing wraps in a guest: errors.As is 30 kB of reflection
	if !ok {
		e = Internal(err.Error())
	}
	w.Str(e.Code)
	w.Str(e.Message)
	w.Str(e.Param)
	w.U32(e.Status)
}

var (
	errUnsupported  = &Error{Code: CodeUnsupported, Message: "no such operation"}
	errInput        = Internal("the input is cut short")
	errUnconfigured = Internal("not configured")
)

func (g *Guest) run(op uint32, in []byte, w *Writer) error {
	r := NewReader(in)
	if !g.readCall(&r) {
		return errInput
	}
	switch op {
	case OpDescribe:
		w.Str(g.manifest)
		return nil
	case OpConfigure:
		return g.configure(&r)
	}
	if op > OpGuardEvents {
		return errUnsupported
	}
	if !g.configured {
		return errUnconfigured
	}
	switch op {
	case OpRequest:
		return g.runRequest(&r, w)
	case OpResponse:
		return g.runResponse(&r, w)
	case OpEvents:
		return g.runEvents(&r, w)
	case OpClassify:
		return g.runClassify(&r, w)
	case OpGuardRequest:
		return g.runGuard(g.plugin.GuardRequest, &r, w)
	case OpGuardResponse:
		return g.runGuard(g.plugin.GuardResponse, &r, w)
	default:
		return g.runGuardEvents(&r, w)
	}
}

func (g *Guest) readCall(r *Reader) bool {
	c := NewReader(r.Bytes())
	g.call = Call{
		Stream:    c.U32()&1 != 0,
		Now:       c.U64(),
		Endpoint:  c.Str(),
		Model:     c.Str(),
		RequestID: c.Str(),
	}
	return r.OK() && c.OK()
}

func (g *Guest) configure(r *Reader) error {
	config := r.Bytes()
	if !r.OK() {
		return errInput
	}
	if len(config) == 0 {
		config = []byte("{}")
	}
	g.configured = false
	plugin, err := g.maker(append([]byte(nil), config...)) // the maker's to keep
	if err != nil {
		if _, ok := err.(*Error); !ok {
			err = Config(err.Error())
		}
		return err
	}
	g.plugin, g.configured = plugin, true
	return nil
}

func (g *Guest) runRequest(r *Reader, w *Writer) error {
	body := r.Bytes()
	if !r.OK() {
		return errInput
	}
	if g.plugin.Request == nil {
		return errUnsupported
	}
	q := &g.request
	*q = Request{
		Method: "POST", ContentType: "application/json",
		Header: g.headerRoom, State: g.stateRoom[:0], Body: g.bodyRoom[:0],
	}
	err := g.plugin.Request(&g.call, body, q)
	g.headerRoom = room(g.headerRoom, q.Header)
	g.stateRoom, g.bodyRoom = room(g.stateRoom, q.State), room(g.bodyRoom, q.Body)
	if err != nil {
		return err
	}
	w.U32(0) // kind
	w.Str(q.Method)
	w.Str(q.Path)
	w.U32(uint32(len(q.Header)))
	for i := range q.Header {
		w.Str(q.Header[i].Name)
		w.Str(q.Header[i].Value)
	}
	w.Str(q.ContentType)
	w.U32(uint32(q.Framing))
	w.Bytes(q.State)
	w.Bytes(q.Body)
	return nil
}

// readAnswer reads state, status, headers and body.
func (g *Guest) readAnswer(r *Reader) bool {
	g.call.State = r.Bytes()
	g.answer = Answer{Status: r.U32()}
	g.header = g.header[:0]
	for n := r.Count(8); n > 0; n-- {
		g.header = append(g.header, Field{r.Str(), r.Str()})
	}
	g.answer.Header = g.header
	g.answer.Body = r.Bytes()
	return r.OK()
}

func (g *Guest) runResponse(r *Reader, w *Writer) error {
	if !g.readAnswer(r) {
		return errInput
	}
	if g.plugin.Response == nil {
		return errUnsupported
	}
	body, err := g.plugin.Response(&g.call, &g.answer, g.bodyRoom[:0])
	g.bodyRoom = room(g.bodyRoom, body)
	if err != nil {
		f, ok := err.(*Failure)
		if !ok {
			return err
		}
		w.U32(1)
		w.U32(0)
		f.write(w)
		return nil
	}
	w.U32(0)
	w.Bytes(body)
	return nil
}

// readFrames reads flags and a list of frames.
func (g *Guest) readFrames(r *Reader) (ended bool) {
	ended = r.U32()&1 != 0
	g.frames = g.frames[:0]
	for n := r.Count(8); n > 0; n-- {
		g.frames = append(g.frames, Frame{r.Str(), r.Bytes()})
	}
	return ended
}

// copyOfState is the state handed in, to be replaced.
func (g *Guest) copyOfState() []byte {
	g.stateRoom = room(g.stateRoom, g.call.State)
	return append(g.stateRoom, g.call.State...)
}

func (g *Guest) runEvents(r *Reader, w *Writer) error {
	g.call.State = r.Bytes()
	ended := g.readFrames(r)
	if !r.OK() {
		return errInput
	}
	if g.plugin.Events == nil {
		return errUnsupported
	}
	e := &g.events
	e.reset()
	e.Done, e.failed, e.failure = false, false, Failure{}
	e.State = g.copyOfState()
	err := g.plugin.Events(&g.call, g.frames, ended, e)
	g.stateRoom = room(g.stateRoom, e.State)
	if err != nil {
		f, ok := failureOf(err)
		if !ok {
			return err
		}
		e.Fail(f)
	}
	var flags uint32
	if e.failed {
		flags = 2
	} else if e.Done {
		flags = 1
	}
	w.U32(flags)
	w.Bytes(e.State)
	e.write(w)
	if e.failed {
		e.failure.write(w)
	}
	return nil
}

// failureOf turns an error of Events into the failure that ends the answer: what was emitted
// before it has been said, however the frames were batched.
func failureOf(err error) (Failure, bool) {
	switch e := err.(type) {
	case *Failure:
		return *e, true
	case *Error:
		if e.Code == CodeUpstreamMalformed {
			return Failure{Class: MalformedAnswer, Message: e.Message}, true
		}
	}
	return Failure{}, false
}

func (f *Frames) write(w *Writer) {
	w.U32(f.count)
	*w = append(*w, f.buf...)
}

func (g *Guest) runClassify(r *Reader, w *Writer) error {
	if !g.readAnswer(r) {
		return errInput
	}
	if g.plugin.Classify == nil {
		return errUnsupported
	}
	f := g.plugin.Classify(&g.call, &g.answer)
	f.write(w)
	return nil
}

func (g *Guest) readSubject(r *Reader) bool {
	s := NewReader(r.Bytes())
	g.subject = Subject{Key: s.Str(), Labels: s.Bytes(), Alias: s.Str()}
	return s.OK()
}

func (g *Guest) runGuard(guard func(*Call, *Subject, []byte, *Verdict) error, r *Reader, w *Writer) error {
	ok := g.readSubject(r)
	body := r.Bytes()
	if !ok || !r.OK() {
		return errInput
	}
	if guard == nil {
		return errUnsupported
	}
	v := &g.verdict
	*v = Verdict{Body: g.bodyRoom[:0]}
	err := guard(&g.call, &g.subject, body, v)
	g.bodyRoom = room(g.bodyRoom, v.Body)
	if err != nil {
		return err
	}
	w.U32(uint32(v.Action))
	w.Str(v.Reason)
	w.Str(v.Message)
	w.Bytes(v.Body)
	return nil
}

func (g *Guest) runGuardEvents(r *Reader, w *Writer) error {
	ok := g.readSubject(r)
	g.call.State = r.Bytes()
	ended := g.readFrames(r)
	if !ok || !r.OK() {
		return errInput
	}
	if g.plugin.GuardEvents == nil {
		return errUnsupported
	}
	v := &g.guarded
	v.reset()
	v.Action, v.Reason, v.Message = Pass, "", ""
	v.State = g.copyOfState()
	err := g.plugin.GuardEvents(&g.call, &g.subject, g.frames, ended, v)
	g.stateRoom = room(g.stateRoom, v.State)
	if err != nil {
		return err
	}
	w.U32(uint32(v.Action))
	w.Str(v.Reason)
	w.Str(v.Message)
	w.Bytes(v.State)
	v.write(w)
	return nil
}
