package openai

import (
	"bytes"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// StreamOptions say what one attempt's stream needs on its way down.
type StreamOptions struct {
	IncludeUsage bool   // the caller asked for the usage chunk
	Model        string // filled in where the provider sends no model; "" leaves it out
	Disclosure   []byte // JSON value for "interlock" in the first chunk; nil = none
	KeepText     bool   // keep the answer's text: a buffered release, or a promised schema
	Structured   bool   // structured output was promised
}

// Step says what one event of a stream was.
type Step uint8

// The steps. Only Quiet, Output and Done may append bytes.
const (
	Quiet     Step = iota // nothing meaningful: a role, an empty delta, usage, response.created
	Output                // meaningful output
	Ping                  // a comment or an event without data; nothing was appended
	Malformed             // not what the wire format allows; nothing was appended
	Failed                // the provider reports an error: see Failure; nothing was appended
	Done                  // the provider's end marker: call End. A response's last event was appended
	steps
)

var stepWords = [steps]string{"quiet", "output", "ping", "malformed", "failed", "done"}

func (s Step) String() string {
	if s >= steps {
		return "unknown"
	}
	return stepWords[s]
}

// Stream decodes one attempt's streamed answer of chat completions, completions or responses, and
// makes the bytes for the caller. Reset it before each attempt; its buffers are kept.
//
// On the way down it changes only what would break a typed SDK or a count: the usage comes in one
// chunk without choices, when asked for; tool calls get a type and distinct stable indexes; a list
// of parts as a delta's content becomes text; a finish reason of another vocabulary becomes
// OpenAI's; a missing model is filled in; the first chunk discloses a substitution. Every other
// event passes byte for byte.
type Stream struct {
	record
	endpoint  Endpoint
	options   StreamOptions
	patch     jsonx.Patch
	json      jsonx.Reader
	disclosed bool // the first chunk has passed
	done      bool // the provider's end marker has come
	finished  bool // End has been called
	broken    bool // an event made no sense, though it was JSON

	created  []byte // as written, for a usage chunk of our own
	usageRaw []byte // the last usage object, as the caller gets it
	held     []byte // the provider's usage event, held back until the end
	list     parts
	scratch  []byte
	repeat   repeat

	responseState
}

// Reset makes the stream ready for an attempt.
func (s *Stream) Reset(e Endpoint, o StreamOptions) {
	s.record.reset()
	s.responseState.reset()
	s.endpoint, s.options = e, o
	s.patch.Reset()
	s.disclosed, s.done, s.finished, s.broken = false, false, false, false
	s.repeat.reset()
	s.created, s.usageRaw, s.held = s.created[:0], s.usageRaw[:0], modest(s.held)
}

var doneMarker = []byte("[DONE]")

// Event takes one event and appends what goes downstream to dst. An event that is no JSON leaves no
// trace; one that is JSON but makes no sense is Malformed too, and leaves the stream Open. What
// follows a Done step is not looked at.
func (s *Stream) Event(dst []byte, ev *Event) ([]byte, Step) {
	if s.done || s.finished || len(ev.Data) == 0 {
		return dst, Ping
	}
	if out, text, ok := s.repeat.again(dst, ev); ok {
		s.sayAgain(text)
		return out, Output
	}
	if ev.Data[0] != '{' && bytes.Equal(bytes.TrimSpace(ev.Data), doneMarker) {
		s.done = true
		return dst, Done
	}
	if !jsonx.Valid(ev.Data) {
		return dst, Malformed
	}
	if s.json.Reset(ev.Data); s.json.Peek() != jsonx.Object {
		if u, ok := ReadError(ev.Data); ok {
			s.fail(u)
			return dst, Failed
		}
		return dst, Malformed
	}
	s.patch.Reset()
	if s.endpoint == Responses {
		return s.responseEvent(dst, ev)
	}
	return s.chunk(dst, ev)
}

// sayAgain notes the text of an event that is the remembered one again.
func (s *Stream) sayAgain(text []byte) {
	if s.options.KeepText {
		known := s.record.choice(s.repeat.choice)
		known.text = jsonx.AppendDecoded(known.text, text)
	}
}

// pass appends the event, patched where anything has to change.
func (s *Stream) pass(dst []byte, ev *Event, open int) []byte {
	if !s.disclosed {
		s.disclosed = true
		if len(s.options.Disclosure) > 0 {
			s.scratch = append(s.scratch[:0], s.options.Disclosure...)
			jsonx.Compact(s.scratch, 0)
			s.patch.InsertMember(ev.Data, open, "interlock", s.scratch)
		}
	}
	if ev.Plain && s.patch.Empty() {
		return append(dst, ev.Raw...)
	}
	return ev.appendEdited(dst, &s.patch)
}

// End is called at the provider's end marker or the end of its body. Where the answer is Whole or
// Empty it appends what is still owed: the usage chunk, when asked for, and the one [DONE], which
// responses do not have.
func (s *Stream) End(dst []byte) ([]byte, Ending) {
	if s.endpoint == Responses {
		return dst, s.responseEnding()
	}
	ending := s.record.ending()
	if s.broken && !s.failed {
		ending = Broken
	}
	if s.finished || ending != Whole && ending != Empty {
		return dst, ending
	}
	s.finished = true
	if s.options.IncludeUsage && s.hasUsage {
		dst = s.appendUsageChunk(dst)
	}
	return append(dst, "data: [DONE]\n\n"...), ending
}

func (s *Stream) appendUsageChunk(dst []byte) []byte {
	if len(s.held) > 0 {
		return append(dst, s.held...)
	}
	dst = append(dst, `data: {"id":`...)
	dst = jsonx.AppendString(dst, s.id)
	if s.endpoint == Completions {
		dst = append(dst, `,"object":"text_completion","created":`...)
	} else {
		dst = append(dst, `,"object":"chat.completion.chunk","created":`...)
	}
	if len(s.created) > 0 {
		dst = append(dst, s.created...)
	} else {
		dst = append(dst, '0')
	}
	dst = append(dst, `,"model":`...)
	if s.model != "" {
		dst = jsonx.AppendString(dst, s.model)
	} else {
		dst = jsonx.AppendString(dst, s.options.Model)
	}
	dst = append(dst, `,"choices":[],"usage":`...)
	from := len(dst)
	dst = append(dst, s.usageRaw...)
	jsonx.Compact(dst, from)
	return append(dst, "}\n\n"...)
}

// Open says whether a tool call or promised structured output has begun and not ended: a
// malformed event may not be skipped then.
func (s *Stream) Open() bool {
	if s.broken {
		return true
	}
	if s.endpoint == Responses {
		return !s.done && s.products != 0 && (s.options.Structured || s.responseState.callOpen())
	}
	for i := range s.calls {
		if c := s.calls[i].choice; c < len(s.choices) && s.choices[c].finish == "" {
			return true
		}
	}
	if !s.options.Structured || s.products == 0 {
		return false
	}
	for i := range s.choices {
		if s.choices[i].seen && s.choices[i].finish == "" {
			return true
		}
	}
	return false
}
