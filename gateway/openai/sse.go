package openai

import (
	"bytes"
	"errors"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// MaxEvent is the largest event that a Splitter accepts unless told otherwise.
const MaxEvent = 32 << 20

// keepBuffer is the largest buffer that outlives the event that needed it.
const keepBuffer = 256 << 10

// Heartbeat is what keeps a silent stream open: a comment, and never a blank line.
const Heartbeat = ":\n"

// ErrEventTooLarge says that an event has more bytes than its Splitter allows.
var ErrEventTooLarge = errors.New("openai: a server-sent event is larger than the limit")

// Event is one block of a stream of server-sent events. Its slices hold until the next call of
// the Splitter that made it.
type Event struct {
	Raw  []byte // the block as it came
	Name []byte // the event field; nil when absent
	Data []byte // the data lines joined by line feeds; nil when there was none
	// Plain: Raw may go downstream as it is. It has at most one data line, ends its lines with
	// line feeds, starts with no byte order mark and closes with a blank line. Data is then a part
	// of Raw.
	Plain bool

	dataAt int // where Data is in Raw, when Plain
}

// Splitter cuts bytes into events, per the WHATWG specification of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream), but
// for one thing: an event that the end of the body leaves without its blank line is handed out
// by Flush rather than dropped. An event that lies whole in the bytes fed is not copied. How the
// bytes were cut when they were fed makes no difference to the events. The zero value is ready
// for use.
type Splitter struct {
	Max int // bytes an event may have; 0 = MaxEvent

	in      []byte
	start   int    // where the current event begins in in
	pos     int    // how far in was looked at
	nextCR  int    // the first carriage return at or behind pos, len(in) when none
	buf     []byte // the part of the current event that came with earlier bytes
	line    int    // bytes of the current line so far
	afterCR bool   // the last byte was a carriage return: a line feed belongs to it
	plain   bool   // no carriage return in the current event so far
	handed  bool   // buf was handed out with the last event
	begun   bool   // the first line has passed: no byte order mark can follow
	joined  []byte
	err     error
}

// Reset makes the splitter ready for another stream; a modest buffer is kept.
func (s *Splitter) Reset() {
	*s = Splitter{Max: s.Max, buf: modest(s.buf), joined: modest(s.joined)}
}

func modest(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// Feed hands over the next bytes. They must not change until Next has returned false, and events
// found in them must not be used afterwards.
func (s *Splitter) Feed(b []byte) {
	s.in, s.start, s.pos, s.nextCR = b, 0, 0, -1
}

// Next fills ev with the next whole event; false when more bytes are needed. The error is
// ErrEventTooLarge, and final.
func (s *Splitter) Next(ev *Event) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	s.release()
	if !s.find() {
		if s.tooLarge() {
			return false, s.err
		}
		s.buf = append(s.buf, s.in[s.start:]...)
		s.in, s.start, s.pos = nil, 0, 0
		return false, nil
	}
	if s.tooLarge() {
		return false, s.err
	}
	raw := s.in[s.start:s.pos]
	if len(s.buf) > 0 {
		s.buf = append(s.buf, raw...)
		raw, s.handed = s.buf, true
	}
	s.start = s.pos
	s.parse(ev, raw, s.plain)
	s.plain = true
	return true, nil
}

// Flush fills ev with what is left at the end of the stream: an event without its blank line.
func (s *Splitter) Flush(ev *Event) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	s.release()
	if len(s.buf) == 0 {
		return false, nil
	}
	s.handed = true
	s.parse(ev, s.buf, false)
	s.line, s.afterCR, s.plain = 0, false, true
	return true, nil
}

func (s *Splitter) release() {
	if s.handed {
		s.buf, s.handed = modest(s.buf), false
	}
}

func (s *Splitter) tooLarge() bool {
	limit := s.Max
	if limit == 0 {
		limit = MaxEvent
	}
	if len(s.buf)+s.pos-s.start > limit {
		s.err = ErrEventTooLarge
	}
	return s.err != nil
}

// find moves pos behind the blank line that ends the current event; false when the bytes end
// before. Every byte is looked at once.
func (s *Splitter) find() bool {
	for s.pos < len(s.in) {
		fresh := s.pos == s.start && len(s.buf) == 0
		if fresh {
			s.plain = true
		}
		if s.afterCR {
			s.afterCR = false
			if s.in[s.pos] == '\n' {
				if s.pos++; fresh {
					s.start = s.pos
				}
				continue
			}
		}
		end := s.lineEnd()
		s.line += end - s.pos
		s.pos = end
		if end == len(s.in) {
			return false
		}
		if s.pos++; s.in[end] == '\r' {
			s.afterCR, s.plain = true, false
		}
		blank := s.line == 0
		s.line = 0
		if !blank {
			continue
		}
		if fresh { // a blank line in front of an event
			s.start, s.begun = s.pos, true
			continue
		}
		return true
	}
	return false
}

// lineEnd is the offset of the line end at or behind pos, len(in) when there is none.
func (s *Splitter) lineEnd() int {
	if s.nextCR < s.pos {
		s.nextCR = len(s.in)
		if k := bytes.IndexByte(s.in[s.pos:], '\r'); k >= 0 {
			s.nextCR = s.pos + k
		}
	}
	if k := bytes.IndexByte(s.in[s.pos:s.nextCR], '\n'); k >= 0 {
		return s.pos + k
	}
	return s.nextCR
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parse reads the fields of a block.
func (s *Splitter) parse(ev *Event, raw []byte, plain bool) {
	*ev = Event{Raw: raw, Plain: plain}
	at := 0
	if !s.begun {
		s.begun = true
		if bytes.HasPrefix(raw, byteOrderMark) {
			at, ev.Plain = len(byteOrderMark), false
		}
	}
	if ev.Plain && s.oneLine(ev) {
		return
	}
	lines := 0
	for at < len(raw) {
		end := len(raw)
		if k := bytes.IndexByte(raw[at:], '\n'); k >= 0 {
			end = at + k
		}
		for !plain { // a carriage return ends a line too
			k := bytes.IndexByte(raw[at:end], '\r')
			if k < 0 {
				break
			}
			s.field(ev, at, at+k, &lines)
			at += k + 1
		}
		s.field(ev, at, end, &lines)
		at = end + 1
	}
	if lines > 1 {
		ev.Plain = false
	}
}

// oneLine reads what nearly every event is, one data line and a blank one; false where it is
// something else.
func (s *Splitter) oneLine(ev *Event) bool {
	const field = "data: "
	end := len(ev.Raw) - len("\n\n")
	if end < len(field) || string(ev.Raw[:len(field)]) != field || bytes.IndexByte(ev.Raw, '\n') != end {
		return false
	}
	ev.Data, ev.dataAt = ev.Raw[len(field):end], len(field)
	return true
}

// field reads the line [from, to) of the event's block.
func (s *Splitter) field(ev *Event, from, to int, lines *int) {
	value := to
	name := ev.Raw[from:to]
	if k := bytes.IndexByte(name, ':'); k >= 0 {
		name, value = name[:k], from+k+1
		if value < to && ev.Raw[value] == ' ' {
			value++
		}
	}
	switch string(name) {
	case "event":
		ev.Name = ev.Raw[value:to]
	case "data":
		*lines++
		switch *lines {
		case 1:
			ev.Data, ev.dataAt = ev.Raw[value:to], value
			return
		case 2:
			s.joined = append(modest(s.joined), ev.Data...)
		}
		s.joined = append(append(s.joined, '\n'), ev.Raw[value:to]...)
		ev.Data = s.joined
	}
}

// AppendEvent appends one event: an event line when name is not empty, and data, which is JSON or
// a single line, as one data line. Line ends inside JSON can only be blanks between its tokens,
// and become spaces.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	from := len(dst)
	dst = append(dst, data...)
	jsonx.Compact(dst, from)
	return append(dst, '\n', '\n')
}

// appendEdited appends ev with its data patched. What else the block holds stays when it is plain;
// its data is one line then, and so is everything that a patch puts into it.
func (ev *Event) appendEdited(dst []byte, p *jsonx.Patch) []byte {
	if ev.Plain {
		dst = append(dst, ev.Raw[:ev.dataAt]...)
		dst = p.Append(dst, ev.Data)
		return append(dst, ev.Raw[ev.dataAt+len(ev.Data):]...)
	}
	if len(ev.Name) > 0 {
		dst = append(dst, "event: "...)
		dst = append(dst, ev.Name...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	from := len(dst)
	dst = p.Append(dst, ev.Data)
	jsonx.Compact(dst, from)
	return append(dst, '\n', '\n')
}
