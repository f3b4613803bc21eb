package fault

import "strings"

type eventKind uint8

const (
	eventRole eventKind = iota
	eventText
	eventReasoning
	eventRefusal
	eventTool
	eventDelta // text is the delta's JSON
	eventFinish
	eventUsage
	eventDone
	eventError // text is the error object's JSON
	eventData  // text is the whole data
)

// event is one thing a provider says, whatever the endpoint's format.
type event struct {
	kind   eventKind
	choice int
	text   string
	tool   toolCall
	usage  usage
}

type toolCall struct {
	id, name, arguments string
	pieces              int // in how many deltas the arguments come
}

type usage struct {
	prompt, completion int
	cached, reasoning  int // -1: not mentioned
}

// voice speaks one endpoint's format. One voice serves one answer.
type voice interface {
	// say gives an event as the server-sent events of a stream.
	say(event) []sse
	// body is all that was said as one JSON answer.
	body() string
}

// identity is what every chunk of an answer repeats.
type identity struct {
	id      string
	created int64
	model   string // "" leaves the field out
}

// modelField is `"model":"…",` or nothing.
func (i identity) modelField() string {
	if i.model == "" {
		return ""
	}
	return `"model":` + quoted(i.model) + `,`
}

func quoted(s string) string { return string(appendQuoted(nil, s)) }

// sse is one server-sent event before framing.
type sse struct {
	name string // of the event: line, "" for none
	data string
}

type ending uint8

const (
	endingWhole ending = iota // the data line and the empty line
	endingOpen                // the data line ends, the empty line is missing
	endingBare                // not even the data line ends
)

// form is how one event is put on the wire.
type form struct {
	tight  bool // no space after the colon
	split  bool // the data on two lines, cut after its first {
	name   string
	ending ending
}

// frame gives the event's bytes with the newline given.
func (f form) frame(e sse, newline string) []byte {
	field := func(name string) string {
		if f.tight {
			return name + ":"
		}
		return name + ": "
	}
	var b strings.Builder
	b.Grow(len(e.data) + 32)
	if f.name != "" {
		e.name = f.name
	}
	if e.name != "" {
		b.WriteString(field("event") + e.name + newline)
	}
	data := e.data
	if f.split {
		if i := strings.IndexByte(data, '{'); i >= 0 {
			b.WriteString(field("data") + data[:i+1] + newline)
			data = data[i+1:]
		}
	}
	b.WriteString(field("data"))
	b.WriteString(data)
	b.WriteString(f.close(newline))
	return []byte(b.String())
}

// comment gives a comment's bytes.
func (f form) comment(text, newline string) []byte {
	mark := ": "
	if f.tight || text == "" {
		mark = ":"
	}
	return []byte(mark + text + f.close(newline))
}

func (f form) close(newline string) string {
	switch f.ending {
	case endingOpen:
		return newline
	case endingBare:
		return ""
	default:
		return newline + newline
	}
}

// pieces cuts a text into at most n parts of about one length, at rune starts.
func pieces(s string, n int) []string {
	if n < 1 {
		n = 1
	}
	size := (len(s) + n - 1) / n
	var out []string
	for len(s) > size && size > 0 {
		cut := size
		for cut < len(s) && s[cut]&0xc0 == 0x80 {
			cut++
		}
		out = append(out, s[:cut])
		s = s[cut:]
	}
	return append(out, s)
}
