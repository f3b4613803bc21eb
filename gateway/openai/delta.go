package openai

import (
	"strconv"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// readDelta reads the delta of a chat's choice.
func (s *Stream) readDelta(c *chunk, known *choice, index int, r *jsonx.Reader) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	open := r.Pos()
	list := false
	reasons := false // a reasoning_content member is there
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "content":
			if r.Peek() == jsonx.Array {
				s.list.read(r)
				list = true
			} else if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
				s.say(c, known, raw)
				c.textAt = contents(raw, r)
			}
		case "reasoning_content", "reasoning":
			reasons = reasons || string(key) == "reasoning_content"
			s.produceText(c, r, Reasoning)
		case "refusal":
			s.produceText(c, r, Refused)
		case "reasoning_details":
			s.produceAny(c, r, Reasoning)
		case "audio", "images":
			s.produceAny(c, r, Media)
		case "tool_calls":
			s.readPieces(c, index, r)
		case "function_call":
			s.readFunctionCall(c, index, r)
		default:
			r.Skip()
		}
	}
	if !list {
		return
	}
	c.other = true
	if len(s.list.text) > 0 {
		s.say(c, known, s.list.text)
	}
	if len(s.list.thinking) > 0 {
		c.output = true
		s.products |= Reasoning
	}
	s.list.flatten(&s.patch, s.json.Document(), open, reasons)
}

// produceText notes a product when the value is text that is not empty.
func (s *Stream) produceText(c *chunk, r *jsonx.Reader, p Product) {
	if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
		c.output, c.other = true, true
		s.products |= p
	}
}

// produceAny notes a product when the value is an object or a list that is not empty.
func (s *Stream) produceAny(c *chunk, r *jsonx.Reader, p Product) {
	k := r.Peek()
	from, to := r.Skip()
	if (k == jsonx.Object || k == jsonx.Array) && to-from > len("{}") {
		c.output, c.other = true, true
		s.products |= p
	}
}

// readPieces reads the pieces of tool calls in a delta.
func (s *Stream) readPieces(c *chunk, choice int, r *jsonx.Reader) {
	if r.Peek() != jsonx.Array {
		r.Skip()
		return
	}
	r.Enter()
	for r.Item() {
		if r.Peek() != jsonx.Object {
			r.Skip()
			continue
		}
		c.other = true
		p := readPiece(r)
		if !s.readCall(choice, &p) {
			c.outOfRange = true
			continue
		}
		if p.any {
			c.output = true
			s.products |= ToolCalled
		}
	}
}

// readCall joins a piece to its call and puts its index and type right; false when there are too
// many calls to be true.
func (s *Stream) readCall(choice int, p *piece) bool {
	k := s.calls.find(choice, p.index, p.id, len(p.name) > 0)
	begins := k == nil
	if begins {
		if len(s.calls) >= maxCalls {
			return false
		}
		index := s.calls.next(choice)
		if p.index != noSlot && !s.calls.taken(choice, int(p.index)) {
			index = int(p.index)
		}
		k = s.calls.add(choice)
		k.index, k.slot, k.custom = index, p.index, p.custom
	}
	if k.blank() && k.slot == noSlot {
		k.slot = p.index
	}
	setOnce(&k.id, p.id, false)
	setOnce(&k.name, p.name, false)
	k.argue(p.arguments)
	s.mend(k, p, begins)
	return true
}

// mend edits a piece so that SDKs, which join pieces by index, join it to its call.
func (s *Stream) mend(k *call, p *piece, begins bool) {
	doc := s.json.Document()
	if !p.indexAt.Present() {
		s.scratch = appendInt(s.scratch[:0], int64(k.index))
		s.patch.InsertMember(doc, p.open, "index", s.scratch)
	} else if p.index != int64(k.index) {
		s.patch.ReplaceInt(p.indexAt.From, p.indexAt.To, int64(k.index))
	}
	if !begins || len(p.kind) > 0 {
		return
	}
	kind := `"function"`
	if p.custom {
		kind = `"custom"`
	}
	if p.kindAt.Present() {
		s.patch.Replace(p.kindAt.From, p.kindAt.To, kind)
		return
	}
	s.scratch = append(s.scratch[:0], kind...)
	s.patch.InsertMember(doc, p.open, "type", s.scratch)
}

// readFunctionCall reads the one call of the old functions API, which has no ID and no index.
func (s *Stream) readFunctionCall(c *chunk, choice int, r *jsonx.Reader) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	c.other = true
	var p piece
	p.body(r)
	if !p.any {
		return
	}
	k := s.calls.find(choice, noSlot, nil, false)
	if k == nil {
		if len(s.calls) >= maxCalls {
			c.outOfRange = true
			return
		}
		index := s.calls.next(choice)
		k = s.calls.add(choice)
		k.index = index
	}
	setOnce(&k.name, p.name, false)
	k.argue(p.arguments)
	c.output = true
	s.products |= ToolCalled
}

// parts are what a content says that is a list of parts, as the contents of JSON strings.
type parts struct {
	at             Span // the list; absent when the content is none
	text, thinking []byte
}

// read gathers the text and the thinking of a list: {"type": "text", "text": "…"} and
// {"type": "thinking", "thinking": "…" or a list of text parts}. Parts of other types have no place
// in a content that is text.
func (l *parts) read(r *jsonx.Reader) {
	from := r.Pos()
	l.text, l.thinking = l.text[:0], l.thinking[:0]
	l.gather(r, false)
	l.at = Span{from, r.Pos()}
}

func (l *parts) gather(r *jsonx.Reader, think bool) {
	r.Enter()
	for r.Item() {
		switch r.Peek() {
		case jsonx.String:
			raw, _ := r.Str()
			l.add(raw, think)
		case jsonx.Object:
			l.part(r, think)
		default:
			r.Skip()
		}
	}
}

func (l *parts) part(r *jsonx.Reader, think bool) {
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return
		}
		k := r.Peek()
		switch {
		case string(key) == "text" && k == jsonx.String:
			raw, _ := r.Str()
			l.add(raw, think)
		case string(key) == "thinking" && k == jsonx.String:
			raw, _ := r.Str()
			l.add(raw, true)
		case string(key) == "thinking" && k == jsonx.Array:
			l.gather(r, true)
		default:
			r.Skip()
		}
	}
}

func (l *parts) add(raw []byte, think bool) {
	if think {
		l.thinking = append(l.thinking, raw...)
	} else {
		l.text = append(l.text, raw...)
	}
}

// flatten puts the text in the place of the list, and the thinking beside it, in the object that
// opens at open, unless reasons says that there is a reasoning_content already.
func (l *parts) flatten(p *jsonx.Patch, doc []byte, open int, reasons bool) {
	p.Replace(l.at.From, l.at.To, `"`+string(l.text)+`"`)
	if len(l.thinking) > 0 && !reasons {
		p.InsertMember(doc, open, "reasoning_content", []byte(`"`+string(l.thinking)+`"`))
	}
}
