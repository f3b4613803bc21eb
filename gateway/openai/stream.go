package openai

// StreamOptions say what one attempt's stream needs on its way down.
type StreamOptions struct {
	IncludeUsage bool   // the caller asked for the usage chunk
	Model        string // filled in where the provider sends no model
	Disclosure   []byte // JSON value for "interlock" in the first chunk; nil = none
	KeepText     bool   // keep the answer's text: a buffered release, or a promised schema
	Structured   bool   // structured output was promised
}

// Step says what one event of a stream was.
type Step uint8

// The steps. Bytes are appended downstream for Quiet and Output only, and for Done on Responses.
const (
	Quiet     Step = iota // nothing meaningful: a role, an empty delta, a usage chunk, response.created
	Output                // meaningful output
	Ping                  // a comment or an empty event; nothing was appended
	Malformed             // not what the wire format allows; nothing was appended
	Failed                // the provider reports an error: see Failure; nothing was appended
	Done                  // the provider's end marker: call End
)

// Ending is the verdict on a finished answer.
type Ending uint8

// The endings.
const (
	Whole   Ending = iota // every choice has a finish reason
	Empty                 // whole, but with no content, refusal, tool call or length stop
	Cut                   // ended without a finish reason
	Broken                // not the wire format
	Errored               // the provider reported an error
)

// Product is a set of what an answer has held so far.
type Product uint8

// The products.
const (
	Content Product = 1 << iota
	Reasoning
	Refused
	ToolCalled
	Media      // audio or images
	HostedTool // an event of a tool that the provider runs
)

// Stream decodes one attempt's streamed answer and makes the bytes for the caller. Reset it
// before each attempt; its buffers are kept.
type Stream struct{}

// Reset makes the stream ready for an attempt.
func (s *Stream) Reset(e Endpoint, o StreamOptions) { panic("not yet") }

// Event takes one event and appends what goes downstream to dst.
func (s *Stream) Event(dst []byte, ev *Event) ([]byte, Step) { panic("not yet") }

// End is called at the provider's end marker or the end of its body. Where the answer is Whole or
// Empty it appends what is still owed: the usage chunk and the one [DONE].
func (s *Stream) End(dst []byte) ([]byte, Ending) { panic("not yet") }

// AppendPartialEnd appends the events that end a stream after a failure, as official SDKs raise
// them; the body must then end cleanly.
func (s *Stream) AppendPartialEnd(dst []byte, e *Error) []byte { panic("not yet") }

// Failure is the error of a Failed step.
func (s *Stream) Failure() UpstreamError { panic("not yet") }

// Model is the model that the provider named, "" as long as it named none.
func (s *Stream) Model() string { panic("not yet") }

// ID is the answer's ID.
func (s *Stream) ID() string { panic("not yet") }

// Products says what the answer has held so far.
func (s *Stream) Products() Product { panic("not yet") }

// Finish is the finish reason of a choice in OpenAI's words; "" while it is open.
func (s *Stream) Finish(choice int) string { panic("not yet") }

// Open says whether a tool call or promised structured output is unfinished: a malformed event may
// not be skipped then.
func (s *Stream) Open() bool { panic("not yet") }

// Usage is the usage reported so far; false when none was.
func (s *Stream) Usage() (Usage, bool) { panic("not yet") }

// ToolCalls lists the calls so far, in order of choice and index.
func (s *Stream) ToolCalls() []ToolCall { panic("not yet") }

// Text is the text of a choice, where KeepText was asked for.
func (s *Stream) Text(choice int) []byte { panic("not yet") }

// ServiceTier is the tier that the provider says it served with; "" when it does not say.
func (s *Stream) ServiceTier() string { panic("not yet") }
