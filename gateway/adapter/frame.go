package adapter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/interlock-gateway/interlock/gateway/openai"
)

// frame is one event of a provider's stream, as the ABI hands it to a guest. Its slices hold
// until the framer that made it is asked for the next one.
type frame struct{ name, data []byte }

// framer cuts a streamed body into frames. How the bytes were cut when they were fed makes no
// difference to the frames.
type framer interface {
	// feed hands over the next bytes, which stay unchanged until next has returned false.
	feed([]byte)
	// next fills f with the next whole frame; false when more bytes are needed. An error is final.
	next(f *frame) (bool, error)
	// flush fills f with what is left when the body has ended.
	flush(f *frame) (bool, error)
	reset(limit int)
}

var (
	errFrameTooLarge = errors.New("a frame of the stream is larger than the limit")
	errFrame         = errors.New("the stream is not framed as it says")
)

// sseFramer frames server-sent events; comments and blocks without data are none.
type sseFramer struct {
	openai.Splitter
	ev openai.Event
}

func (s *sseFramer) reset(limit int) { s.Reset(); s.Max = limit }

func (s *sseFramer) feed(b []byte) { s.Feed(b) }

func (s *sseFramer) next(f *frame) (bool, error) {
	for {
		ok, err := s.Next(&s.ev)
		if !ok || err != nil {
			return false, err
		}
		if s.ev.Data != nil {
			*f = frame{s.ev.Name, s.ev.Data}
			return true, nil
		}
	}
}

func (s *sseFramer) flush(f *frame) (bool, error) {
	ok, err := s.Flush(&s.ev)
	if !ok || err != nil || s.ev.Data == nil {
		return false, err
	}
	*f = frame{s.ev.Name, s.ev.Data}
	return true, nil
}

// pending is the part of a body that is not framed yet. What lies whole in the bytes fed is not
// copied. What take hands out holds until the next feed.
type pending struct {
	limit int
	in    []byte // fed and not looked at
	buf   []byte // bytes that came earlier, and those after them
	at    int    // where in buf the next frame begins
}

func (p *pending) reset(limit int) {
	if cap(p.buf) > keepBuffer {
		p.buf = nil
	}
	*p = pending{limit: limit, buf: p.buf[:0]}
}

func (p *pending) feed(b []byte) {
	if p.buf = p.buf[:copy(p.buf, p.buf[p.at:])]; len(p.buf) > 0 {
		p.buf = append(p.buf, b...)
	} else {
		p.in = b
	}
	p.at = 0
}

// bytes are those that are not framed yet.
func (p *pending) bytes() []byte {
	if p.at < len(p.buf) {
		return p.buf[p.at:]
	}
	return p.in
}

// take hands out the first n of them.
func (p *pending) take(n int) (b []byte) {
	if p.at < len(p.buf) {
		b, p.at = p.buf[p.at:p.at+n:p.at+n], p.at+n
	} else {
		b, p.in = p.in[:n:n], p.in[n:]
	}
	return b
}

// wait keeps the beginning of a frame for the bytes to come.
func (p *pending) wait() (bool, error) {
	if len(p.in) > 0 {
		p.buf, p.at, p.in = append(p.buf[:0], p.in...), 0, nil
	}
	if len(p.buf)-p.at > p.limit {
		return false, errFrameTooLarge
	}
	return false, nil
}

// linesFramer frames a JSON value a line (https://github.com/ndjson/ndjson-spec); blank lines
// are none.
type linesFramer struct {
	pending
	seen int // bytes looked at for the end of the line
}

func (l *linesFramer) reset(limit int) { l.pending.reset(limit); l.seen = 0 }

func (l *linesFramer) next(f *frame) (bool, error) {
	for {
		b := l.bytes()
		end := bytes.IndexByte(b[l.seen:], '\n')
		if end < 0 {
			l.seen = len(b)
			return l.wait()
		}
		line := bytes.TrimSpace(l.take(l.seen + end + 1))
		l.seen = 0
		if len(line) > l.limit {
			return false, errFrameTooLarge
		}
		if len(line) > 0 {
			*f = frame{data: line}
			return true, nil
		}
	}
}

func (l *linesFramer) flush(f *frame) (bool, error) {
	b := l.bytes()
	l.seen = 0
	if line := bytes.TrimSpace(l.take(len(b))); len(line) > 0 {
		*f = frame{data: line}
		return true, nil
	}
	return false, nil
}

// arrayFramer frames the elements of one JSON array. It looks only for where they end: what is
// in them is for the guest.
type arrayFramer struct {
	pending
	seen    int // bytes of the current element looked at
	depth   int
	begun   bool // the array's bracket was seen
	ended   bool
	text    bool // inside a string
	escaped bool
}

func (a *arrayFramer) reset(limit int) { p := a.pending; p.reset(limit); *a = arrayFramer{pending: p} }

func (a *arrayFramer) next(f *frame) (bool, error) {
	for {
		b := a.bytes()
		opens := !a.begun
		end, err := a.scan(b)
		if err != nil {
			return false, err
		}
		if end < 0 {
			a.seen = len(b)
			if a.depth == 0 && !a.text && len(bytes.TrimSpace(b)) == 0 {
				a.take(len(b))
				a.seen = 0
				return false, nil
			}
			return a.wait()
		}
		a.seen = 0
		element := bytes.TrimSpace(a.take(end)[:end-1])
		if len(element) > a.limit {
			return false, errFrameTooLarge
		}
		if len(element) > 0 && !opens {
			*f = frame{data: element}
			return true, nil
		}
	}
}

// scan returns where the current piece ends, its comma or bracket included; -1 where the bytes
// do first.
func (a *arrayFramer) scan(b []byte) (int, error) {
	for i := a.seen; i < len(b); i++ {
		c := b[i]
		switch {
		case a.escaped:
			a.escaped = false
		case a.text:
			if c == '\\' {
				a.escaped = true
			} else if c == '"' {
				a.text = false
			}
		case !a.begun:
			if c == '[' {
				a.begun = true
				return i + 1, nil
			}
			if c > ' ' {
				return 0, errFrame
			}
		case a.ended:
			if c > ' ' {
				return 0, errFrame
			}
		case c == '"':
			a.text = true
		case c == '{' || c == '[':
			a.depth++
		case a.depth > 0 && (c == '}' || c == ']'):
			a.depth--
		case c == ',' && a.depth == 0:
			return i + 1, nil
		case c == ']':
			a.ended = true
			return i + 1, nil
		}
	}
	return -1, nil
}

func (a *arrayFramer) flush(*frame) (bool, error) {
	if a.begun && !a.ended || len(bytes.TrimSpace(a.bytes())) > 0 {
		return false, errFrame // cut inside the array
	}
	return false, nil
}

// awsFramer frames an AWS event stream
// (https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream):
// length, length of headers, CRC of both, headers, payload, CRC of all. The frame's name is the
// :event-type, or "exception:" and the :exception-type.
type awsFramer struct {
	pending
	text []byte
}

const (
	awsPrelude = 12
	awsTrailer = 4
)

func (a *awsFramer) reset(limit int) { a.pending.reset(limit) }

func (a *awsFramer) next(f *frame) (bool, error) {
	b := a.bytes()
	if len(b) < awsPrelude {
		return a.wait()
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return false, errFrame
	}
	if uint64(total) > uint64(a.limit) {
		return false, errFrameTooLarge
	}
	if uint64(total) < awsPrelude+awsTrailer+uint64(headers) {
		return false, errFrame
	}
	if uint64(len(b)) < uint64(total) {
		return a.wait()
	}
	message := a.take(int(total))
	end := len(message) - awsTrailer
	if crc32.ChecksumIEEE(message[:end]) != binary.BigEndian.Uint32(message[end:]) {
		return false, errFrame
	}
	name, err := a.name(message[awsPrelude : awsPrelude+headers])
	if err != nil {
		return false, err
	}
	*f = frame{name, message[awsPrelude+headers : end]}
	return true, nil
}

func (a *awsFramer) flush(*frame) (bool, error) {
	if len(a.bytes()) > 0 {
		return false, errFrame
	}
	return false, nil
}

// name finds the name of a message in its headers.
func (a *awsFramer) name(h []byte) ([]byte, error) {
	var kind, event, exception, code []byte
	for len(h) > 0 {
		n := 1 + int(h[0])
		if len(h) < n+1 {
			return nil, errFrame
		}
		name, typ := h[1:n], h[n]
		h = h[n+1:]
		size, ok := awsSize(typ, h)
		if !ok || len(h) < size {
			return nil, errFrame
		}
		if typ == awsString {
			value := h[2:size]
			switch string(name) {
			case ":message-type":
				kind = value
			case ":event-type":
				event = value
			case ":exception-type":
				exception = value
			case ":error-code":
				code = value
			}
		}
		h = h[size:]
	}
	switch string(kind) {
	case "exception":
		a.text = append(append(a.text[:0], "exception:"...), exception...)
		return a.text, nil
	case "error":
		a.text = append(append(a.text[:0], "exception:"...), code...)
		return a.text, nil
	}
	return event, nil
}

const awsString = 7

// awsSize is how many bytes a header's value of that type has, its length included.
func awsSize(typ byte, b []byte) (int, bool) {
	switch typ {
	case 0, 1: // true, false
		return 0, true
	case 2: // byte
		return 1, true
	case 3: // short
		return 2, true
	case 4: // integer
		return 4, true
	case 5, 8: // long, timestamp
		return 8, true
	case 6, awsString: // bytes
		if len(b) < 2 {
			return 0, false
		}
		return 2 + int(binary.BigEndian.Uint16(b)), true
	case 9: // UUID
		return 16, true
	}
	return 0, false
}
