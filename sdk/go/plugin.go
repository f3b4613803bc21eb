package interlock

// Plugin is what a plugin can do. An operation that is nil is answered with the error
// "unsupported".
//
// Each is a pure function of its arguments and the configuration: it may be called on any
// instance and any number of times. Strings and slices among the arguments hold until it returns
// and must neither be kept nor written to; what it returns is copied before the next call. One
// Plugin is called by one goroutine at a time, so that it may keep scratch memory, but nothing
// that changes an answer.
type Plugin struct {
	// Request turns the caller's body, in OpenAI's format, into the provider's request.
	Request func(c *Call, body []byte, out *Request) error
	// Response appends a whole answer with status 2xx to dst, in OpenAI's format. A *Failure as
	// the error says that the provider reported one inside it.
	Response func(c *Call, in *Answer, dst []byte) ([]byte, error)
	// Events turns frames of a stream into events for the caller. ended: the provider's body has
	// ended, and this is the last call. An upstream_malformed error and a *Failure end the answer
	// as out.Fail does, behind what was emitted.
	Events func(c *Call, in []Frame, ended bool, out *Events) error
	// Classify says what an answer with another status means; its body may be cut short.
	Classify func(c *Call, in *Answer) Failure

	GuardRequest  func(c *Call, s *Subject, body []byte, out *Verdict) error
	GuardResponse func(c *Call, s *Subject, body []byte, out *Verdict) error
	GuardEvents   func(c *Call, s *Subject, in []Frame, ended bool, out *EventsVerdict) error
}

// Maker makes a Plugin for a configuration: a JSON object, `{}` where the operator wrote none. It
// is pure, and may keep config: one source serves several configurations in a process. An error
// should be one of Config.
type Maker func(config []byte) (Plugin, error)

// Call is the context of a call.
type Call struct {
	Stream    bool   // the caller asked for a stream
	Now       uint64 // milliseconds since 1970, UTC
	Endpoint  string // "chat_completions", …; empty for configure and describe
	Model     string // what the provider calls the model
	RequestID string // of this attempt; new for each
	State     []byte // what Request, or the Events before, left; nil in Request
}

// Field is a header. Name is in lower case.
type Field struct{ Name, Value string }

// Framing is how the provider's answer is cut into events.
type Framing uint32

// The framings.
const (
	ByContentType  Framing = iota
	SSE                    // server-sent events
	Lines                  // a JSON value a line
	AWSEventStream         // application/vnd.amazon.eventstream
	JSONArray              // the elements of a JSON array
)

// Request is the provider's request, the result of the operation of that name. It comes with
// Method POST and ContentType application/json set, and with Header, State and Body empty, to be
// appended to.
type Request struct {
	Method      string
	Path        string // begins with a slash, may carry a query; joined to the base URL by the host
	ContentType string
	Header      []Field // only those that the manifest declares
	Framing     Framing
	State       []byte // for the answer to this request; 64 KiB at most
	Body        []byte
}

// Set appends a header.
func (r *Request) Set(name, value string) { r.Header = append(r.Header, Field{name, value}) }

// Answer is an answer of the provider.
type Answer struct {
	Status uint32
	Header []Field // names in lower case; those that the manifest asks for and a few others
	Body   []byte
}

// Get returns the value of the first header with that name, in lower case; "" when there is none.
func (a *Answer) Get(name string) string {
	for i := range a.Header {
		if a.Header[i].Name == name {
			return a.Header[i].Value
		}
	}
	return ""
}

// Frame is one event of a stream.
type Frame struct {
	Name string
	Data []byte
}

// Frames collects the events of a result.
type Frames struct {
	buf   Writer
	count uint32
}

// Emit appends an event without a name; data must have no line feed.
func (f *Frames) Emit(data []byte) { f.EmitNamed("", data) }

// EmitNamed appends an event; data must have no line feed.
func (f *Frames) EmitNamed(name string, data []byte) {
	f.count++
	f.buf.Str(name)
	f.buf.Bytes(data)
}

// EmitFunc appends an event without a name whose data is what write appends to dst.
func (f *Frames) EmitFunc(write func(dst []byte) []byte) { f.Close(write(f.Open(""))) }

// Open begins an event: its data is appended to the slice returned, which Close then gets.
func (f *Frames) Open(name string) []byte {
	f.count++
	f.buf.Str(name)
	f.buf.U32(0)
	return f.buf
}

// Close ends the event that Open began. data is what Open returned with the event's data, which
// must have no line feed, behind it.
func (f *Frames) Close(data []byte) {
	at := len(f.buf)
	f.buf = data
	f.buf.close(at)
}

func (f *Frames) reset() { f.buf, f.count = f.buf[:0], 0 }

// Events is the result of the operation of that name.
type Events struct {
	Frames
	// Done: the provider's answer is whole.
	Done bool
	// State is for the next Events. It comes as a copy of the state handed in: leave it, or
	// replace it with append(State[:0], …).
	State []byte

	failed  bool
	failure Failure
}

// Fail ends the answer with a failure, behind what was emitted.
func (e *Events) Fail(f Failure) { e.failed, e.failure = true, f }

// Failed says whether Fail was called.
func (e *Events) Failed() bool { return e.failed }

// Subject is on whose behalf a guard is asked.
type Subject struct {
	Key    string
	Labels []byte // a JSON object
	Alias  string
}

// Action is a guard's decision.
type Action uint32

// The actions.
const (
	Pass   Action = iota
	Use           // use what is returned instead
	Refuse        // nothing is sent on
)

// Verdict is a guard's result. It comes as Pass, with Body empty, to be appended to.
type Verdict struct {
	Action  Action
	Reason  string // a code of [a-z0-9_]{1,64}
	Message string // for the caller
	Body    []byte // with Use
}

// EventsVerdict is a guard's result for a part of a stream. State is as in Events.
type EventsVerdict struct {
	Frames  // with Use
	Action  Action
	Reason  string
	Message string
	State   []byte
}
