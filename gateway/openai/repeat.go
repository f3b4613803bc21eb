package openai

import (
	"bytes"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// repeat is the latest event of a stream whose only meaning was one piece of visible text. Most
// events of a stream are that event again with another text: every byte around the text is the
// same, and so is what the event means and what becomes of it on its way down. Such an event is
// known by comparing its bytes, in place of reading it.
//
// Beside the text one more string may differ, the random "obfuscation" that OpenAI pads its
// events with. Whatever else differs makes it another event.
type repeat struct {
	buf    []byte // the parts, one behind the other
	in     [3]Span
	out    [3]Span
	parts  int // 0 = no event is known; 2 = text; 3 = text and padding
	choice int64
}

func (p *repeat) reset() { p.parts, p.buf = 0, modest(p.buf) }

func (p *repeat) keep(b []byte) Span {
	from := len(p.buf)
	p.buf = append(p.buf, b...)
	return Span{from, len(p.buf)}
}

func (p *repeat) bytes(s Span) []byte { return p.buf[s.From:s.To] }

// remember keeps an event that was read and passed on as out, if it is one that may come again.
func (p *repeat) remember(ev *Event, c *chunk, patch *jsonx.Patch, out []byte) {
	if !ev.Plain || c.choices != 1 || c.texts != 1 || c.other || c.ended != nil {
		return
	}
	text, pad, end := c.textAt, c.padAt, len(ev.Data)
	if pad.From < text.To {
		pad = Span{end, end} // there is none, or not behind the text
	}
	before, n := patch.Growth(0, text.From)
	between, m := patch.Growth(text.To, pad.From)
	_, k := patch.Growth(pad.To, end)
	if !pad.Present() {
		k = 0 // counted already
	}
	if n+m+k != patch.Len() {
		return // an edit in the text itself
	}
	raw, at := ev.Raw, ev.dataAt
	p.parts, p.buf, p.choice = 2, p.buf[:0], c.textOf
	p.in[0] = p.keep(raw[:at+text.From])
	p.out[0] = p.keep(out[:at+text.From+before])
	if !pad.Present() {
		p.in[1] = p.keep(raw[at+text.To:])
		p.out[1] = p.keep(out[at+text.To+before:])
		return
	}
	p.parts = 3
	p.in[1] = p.keep(raw[at+text.To : at+pad.From])
	p.out[1] = p.keep(out[at+text.To+before : at+pad.From+before+between])
	p.in[2] = p.keep(raw[at+pad.To:])
	p.out[2] = p.keep(out[at+pad.To+before+between:])
}

// again appends what becomes of an event that is the remembered one with another text, which
// it returns; false where it is not.
func (p *repeat) again(dst []byte, ev *Event) (out, text []byte, ok bool) {
	if p.parts == 0 || !ev.Plain {
		return dst, nil, false
	}
	raw := ev.Raw
	before := p.bytes(p.in[0])
	if !bytes.HasPrefix(raw, before) {
		return dst, nil, false
	}
	text, rest, ok := cutString(raw[len(before):])
	if !ok || len(text) == 0 {
		return dst, nil, false
	}
	var pad []byte
	if p.parts == 3 {
		between := p.bytes(p.in[1])
		if !bytes.HasPrefix(rest, between) {
			return dst, nil, false
		}
		if pad, rest, ok = cutString(rest[len(between):]); !ok || !bytes.Equal(rest, p.bytes(p.in[2])) {
			return dst, nil, false
		}
	} else if !bytes.Equal(rest, p.bytes(p.in[1])) {
		return dst, nil, false
	}
	dst = append(append(append(dst, p.bytes(p.out[0])...), text...), p.bytes(p.out[1])...)
	if p.parts == 3 {
		dst = append(append(dst, pad...), p.bytes(p.out[2])...)
	}
	return dst, text, true
}

// cutString cuts b at the quote that closes the string whose contents b starts with; false
// where they are not what a JSON string may hold.
func cutString(b []byte) (contents, rest []byte, ok bool) {
	end, ok := jsonx.StringEnd(b, 0)
	if !ok {
		return nil, b, false
	}
	return b[:end], b[end:], true
}
