package openai

// MaxEvent is the largest event that a Splitter accepts unless told otherwise.
const MaxEvent = 32 << 20

// Heartbeat is what keeps a silent stream open: a comment, and never a blank line.
const Heartbeat = ":\n"

// Event is one block of a stream of server-sent events. Its slices hold until the next call of
// the Splitter that made it.
type Event struct {
	Raw  []byte // the block as it came, its blank line included
	Name []byte // the event field; nil when absent
	Data []byte // the data lines joined by line feeds; nil when there was none
	// Plain: Raw may go downstream as it is: it has one data line at most and ends with a blank line.
	Plain bool
}

// Splitter cuts bytes into events, per the WHATWG specification of server-sent events:
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream. The
// zero value is ready for use.
type Splitter struct {
	Max int // bytes an event may have; 0 = MaxEvent
}

// Feed hands over the next bytes. They must not change until Next has returned false.
func (s *Splitter) Feed(b []byte) { panic("not yet") }

// Next fills ev with the next whole event; false when more bytes are needed. The error is
// ErrEventTooLarge, and final.
func (s *Splitter) Next(ev *Event) (bool, error) { panic("not yet") }

// Flush fills ev with what is left at the end of the stream: an event without its blank line.
func (s *Splitter) Flush(ev *Event) (bool, error) { panic("not yet") }

// Reset makes the splitter ready for another stream; its buffer is kept.
func (s *Splitter) Reset() { panic("not yet") }

// AppendEvent appends one event: an event line when name is not empty, and data as one valid data
// line; line ends inside JSON data become spaces.
func AppendEvent(dst []byte, name string, data []byte) []byte { panic("not yet") }
