package openai

import (
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// chunk is one event of a chat or completions stream while it is read.
type chunk struct {
	open       int  // offset of the opening brace
	hasChoices bool // a choices array is there
	choices    int
	modelAt    Span // the model's value, absent when there is no such member
	hasModel   bool // and it is a name
	usage      usageFields
	usageAt    memberAt
	isError    bool
	choiceErr  UpstreamError // the error of a choice
	outOfRange bool          // an index or a shape that is not to be believed
	output     bool
	ended      []byte // a finish reason that is none

	// Of an event that may come again: see repeat.
	texts  int   // pieces of visible text
	textAt Span  // the contents of the latest
	textOf int64 // its choice's place in the record
	padAt  Span  // the contents of "obfuscation"
	other  bool  // it holds something else that matters
}

// memberAt is where a member of an object stands.
type memberAt struct {
	before, key, from, to int
	present, null         bool
}

// chunk reads one valid JSON object of a chat or completions stream.
func (s *Stream) chunk(dst []byte, ev *Event) ([]byte, Step) {
	var c chunk
	s.readChunk(&c)
	switch {
	case c.isError || string(ev.Name) == "error":
		s.fail(c.failure(ev))
		return dst, Failed
	case c.outOfRange:
		s.broken = true
		return dst, Malformed
	case c.ended != nil:
		s.fail(unfinished(c.ended))
		return dst, Failed
	case !c.hasChoices && !c.usage.any:
		if u, ok := ReadError(ev.Data); ok {
			s.fail(u)
			return dst, Failed
		}
		return dst, Quiet // something of the provider's own that no SDK expects
	}
	s.normaliseModel(&c, ev.Data)
	if c.usage.any {
		s.noteUsage(&c, ev.Data)
		if c.choices == 0 {
			s.holdUsage(&c, ev)
			return dst, Quiet
		}
	}
	if c.usageAt.present && (c.usage.any || !s.options.IncludeUsage) {
		s.patch.RemoveMember(ev.Data, c.usageAt.before, c.usageAt.key, c.usageAt.to)
	}
	first, from := !s.disclosed, len(dst)
	dst = s.pass(dst, ev, c.open)
	if !c.output {
		return dst, Quiet
	}
	if !first && !c.usage.any {
		s.repeat.remember(ev, &c, &s.patch, dst[from:])
	}
	return dst, Output
}

// failure is what an event says that is an error, or holds one.
func (c *chunk) failure(ev *Event) UpstreamError {
	u, found := ReadError(ev.Data)
	if !found {
		u = c.choiceErr
	}
	if u.Message == "" {
		u.Message = "the provider sent an error event"
	}
	return u
}

func (s *Stream) readChunk(c *chunk) {
	r := &s.json
	c.open = r.Pos()
	before := c.open + 1
	r.Enter()
	for {
		key, at, ok := r.Key()
		if !ok {
			return
		}
		from := r.Pos()
		switch string(key) {
		case "choices":
			s.readChoices(c)
		case "id":
			if raw, escaped, ok := r.StrOrSkip(); ok {
				s.setID(raw, escaped)
			}
		case "model":
			raw, escaped, ok := r.StrOrSkip()
			if c.hasModel = ok && len(raw) > 0; c.hasModel {
				s.setModel(raw, escaped)
			}
			c.modelAt = Span{from, r.Pos()}
		case "created":
			number := r.Peek() == jsonx.Number
			if from, to := r.Skip(); number && len(s.created) == 0 && to-from < 32 {
				s.created = append(s.created, r.Bytes(from, to)...)
			}
		case "usage":
			null := r.Peek() == jsonx.Null
			c.usage = readUsage(r)
			c.usageAt = memberAt{before, at, from, r.Pos(), true, null}
		case "error":
			_, found := readErrorValue(r, 0)
			c.isError = c.isError || found
		case "service_tier":
			if raw, escaped, ok := r.StrOrSkip(); ok {
				setOnce(&s.tier, raw, escaped)
			}
		case "obfuscation":
			if raw, _, ok := r.StrOrSkip(); ok {
				c.padAt = contents(raw, r)
			}
		default:
			r.Skip()
		}
		before = r.Pos()
	}
}

// contents is where the contents of the string are that the reader has just read.
func contents(raw []byte, r *jsonx.Reader) Span {
	end := r.Pos() - len(`"`)
	return Span{end - len(raw), end}
}

func (s *Stream) readChoices(c *chunk) {
	r := &s.json
	if k := r.Peek(); k != jsonx.Array {
		r.Skip()
		c.outOfRange = c.outOfRange || k != jsonx.Null
		return
	}
	c.hasChoices = true
	r.Enter()
	for n := int64(0); r.Item(); n++ {
		if r.Peek() != jsonx.Object {
			r.Skip()
			c.outOfRange = true
			continue
		}
		s.readChoice(c, n)
		c.choices++
	}
}

// readChoice reads one element of choices: {"index", "delta" or "text", "finish_reason"}. The
// index decides what the rest belongs to; providers write it first, but need not.
func (s *Stream) readChoice(c *chunk, position int64) {
	r := &s.json
	index := position
	var known *choice
	var delta, text, finish int // offsets of values that came before the index
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		at := r.Pos()
		switch string(key) {
		case "index":
			if n, ok := r.IntOrSkip(); ok {
				index = n
			}
			if known = s.record.choice(index); known == nil {
				c.outOfRange = true
				r.Close(jsonx.Object)
				return
			}
		case "delta":
			if known == nil {
				delta = at
				r.Skip()
			} else {
				s.readDelta(c, known, int(index), r)
			}
		case "text":
			if known == nil {
				text = at
				r.Skip()
			} else {
				s.readText(c, known, r)
			}
		case "finish_reason":
			if known == nil {
				finish = at
				r.Skip()
			} else {
				s.readFinish(c, known, r)
			}
		case "error":
			if u, found := readErrorValue(r, 0); found {
				c.isError, c.choiceErr = true, u
			}
		default:
			r.Skip()
		}
	}
	if known == nil {
		if known = s.record.choice(index); known == nil {
			c.outOfRange = true
			return
		}
	}
	s.readEarlier(c, known, int(index), delta, text, finish)
	c.textOf = index
}

// readEarlier goes back to what stood before its choice's index.
func (s *Stream) readEarlier(c *chunk, known *choice, index, delta, text, finish int) {
	if delta+text+finish == 0 {
		return
	}
	var r jsonx.Reader
	doc := s.json.Document()
	if delta > 0 {
		r.ResetAt(doc, delta)
		s.readDelta(c, known, index, &r)
	}
	if text > 0 {
		r.ResetAt(doc, text)
		s.readText(c, known, &r)
	}
	if finish > 0 {
		r.ResetAt(doc, finish)
		s.readFinish(c, known, &r)
	}
}

func (s *Stream) readFinish(c *chunk, known *choice, r *jsonx.Reader) {
	from := r.Pos()
	raw, _, ok := r.StrOrSkip()
	if !ok || len(raw) == 0 {
		return
	}
	word, same, ok := finishWord(raw)
	if !ok {
		c.ended = raw
		return
	}
	known.finish = word
	if !same {
		s.patch.ReplaceString(from, r.Pos(), word)
	}
}

// readText reads the text of a legacy completion.
func (s *Stream) readText(c *chunk, known *choice, r *jsonx.Reader) {
	if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
		s.say(c, known, raw)
		c.textAt = contents(raw, r)
	}
}

// say notes visible text, given as the contents of a JSON string.
func (s *Stream) say(c *chunk, known *choice, raw []byte) {
	c.output = true
	c.texts++
	s.products |= Content
	if s.options.KeepText {
		known.text = jsonx.AppendDecoded(known.text, raw)
	}
}

func (s *Stream) normaliseModel(c *chunk, data []byte) {
	if c.hasModel || s.options.Model == "" {
		return
	}
	if c.modelAt.Present() {
		s.patch.ReplaceString(c.modelAt.From, c.modelAt.To, s.options.Model)
		return
	}
	s.scratch = jsonx.AppendString(s.scratch[:0], s.options.Model)
	s.patch.InsertMember(data, c.open, "model", s.scratch)
}

// noteUsage keeps what the chunk says about usage, the number of completion tokens put right.
func (s *Stream) noteUsage(c *chunk, data []byte) {
	s.usage, s.hasUsage = c.usage.Usage, true
	s.held = s.held[:0]
	if !s.options.IncludeUsage {
		return
	}
	at := c.usageAt
	if !c.usage.moved {
		s.usageRaw = append(s.usageRaw[:0], data[at.from:at.to]...)
		return
	}
	number := c.usage.outputAt
	s.usageRaw = append(s.usageRaw[:0], data[at.from:number.From]...)
	s.usageRaw = appendInt(s.usageRaw, c.usage.Output)
	s.usageRaw = append(s.usageRaw, data[number.To:at.to]...)
}

// holdUsage holds the provider's usage chunk back until the end of the stream.
func (s *Stream) holdUsage(c *chunk, ev *Event) {
	if !s.options.IncludeUsage {
		return
	}
	if c.usage.moved {
		s.patch.ReplaceInt(c.usage.outputAt.From, c.usage.outputAt.To, c.usage.Output)
	}
	if !c.hasChoices {
		s.patch.InsertMember(ev.Data, c.open, "choices", []byte("[]"))
	}
	s.held = ev.appendEdited(s.held[:0], &s.patch)
}
