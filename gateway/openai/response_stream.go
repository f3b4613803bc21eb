package openai

import (
	"bytes"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// maxKept bounds what is kept of a response for the event that ends it when it breaks, in bytes.
const maxKept = 1 << 20

// responseState is what a responses stream needs besides the record.
type responseState struct {
	sequence    int64 // the next sequence_number
	hasSequence bool
	response    []byte // the last response object
	items       []keptItem
	kept        int
	terminal    bool
}

// keptItem is an output item so far.
type keptItem struct {
	index int64
	done  bool
	call  bool   // of a tool that the caller runs
	spoke bool   // its text came as deltas
	raw   []byte // as added, or as done
	text  []byte // contents of JSON strings: the text or arguments so far
}

func (s *responseState) reset() {
	items := s.items
	for i := range items {
		items[i] = keptItem{raw: modest(items[i].raw), text: modest(items[i].text)}
	}
	*s = responseState{response: modest(s.response), items: items[:0]}
}

// callOpen says whether a tool call has begun and not ended.
func (s *responseState) callOpen() bool {
	for i := range s.items {
		if s.items[i].call && !s.items[i].done {
			return true
		}
	}
	return false
}

func (s *responseState) item(index int64) *keptItem {
	for i := range s.items {
		if s.items[i].index == index {
			return &s.items[i]
		}
	}
	n := len(s.items)
	if n >= maxIndex {
		return nil
	}
	if n < cap(s.items) {
		s.items = s.items[:n+1]
	} else {
		s.items = append(s.items, keptItem{})
	}
	s.items[n].index = index
	return &s.items[n]
}

// keep appends to a buffer as long as the bound on everything kept allows it.
func (s *responseState) keep(to *[]byte, b []byte) {
	if s.kept+len(b) > maxKept {
		return
	}
	s.kept += len(b)
	*to = append(*to, b...)
}

// responseEvent is one event of a responses stream while it is read.
type responseEvent struct {
	open               int
	kind               []byte
	delta              []byte // contents of a JSON string
	text               []byte
	index              int64
	responseAt, itemAt Span
}

// responseEvent reads one valid JSON object of a responses stream.
func (s *Stream) responseEvent(dst []byte, ev *Event) ([]byte, Step) {
	var e responseEvent
	s.readResponseEvent(&e)
	if len(e.kind) == 0 {
		e.kind = ev.Name
	}
	switch string(e.kind) {
	case "":
		if u, ok := ReadError(ev.Data); ok {
			s.fail(u)
			return dst, Failed
		}
		return dst, Malformed
	case "error":
		u, _ := ReadError(ev.Data)
		if u.Type == "error" {
			u.Type = ""
		}
		s.fail(u)
		return dst, Failed
	case "response.failed", "response.cancelled":
		if f := s.readResponseOf(&e, ev, false); !s.failed {
			s.failAs(f.failure, string(e.kind))
		}
		return dst, Failed
	case "response.completed", "response.incomplete":
		f := s.readResponseOf(&e, ev, true)
		if s.failed {
			return dst, Failed
		}
		if f.status == "" && string(e.kind) == "response.incomplete" {
			f.status = "incomplete"
		}
		s.finishResponse(&f)
		s.done, s.terminal = true, true
		return s.pass(dst, ev, e.open), Done
	case "response.created", "response.in_progress", "response.queued":
		s.readResponseOf(&e, ev, false)
		return s.pass(dst, ev, e.open), Quiet
	}
	product := s.readProduct(&e)
	s.products |= product
	dst = s.pass(dst, ev, e.open)
	if product != 0 {
		return dst, Output
	}
	return dst, Quiet
}

func (s *Stream) readResponseEvent(e *responseEvent) {
	r := &s.json
	e.open = r.Pos()
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "type":
			e.kind = decodedText(r)
		case "sequence_number":
			if n, ok := r.IntOrSkip(); ok && n >= 0 {
				s.sequence, s.hasSequence = n+1, true
			}
		case "output_index":
			e.index, _ = r.IntOrSkip()
		case "delta":
			e.delta, _, _ = r.StrOrSkip()
		case "text", "refusal", "arguments":
			e.text, _, _ = r.StrOrSkip()
		case "response":
			e.responseAt = objectAt(r)
		case "item":
			e.itemAt = objectAt(r)
		default:
			r.Skip()
		}
	}
}

func objectAt(r *jsonx.Reader) Span {
	object := r.Peek() == jsonx.Object
	from, to := r.Skip()
	if !object {
		return Span{}
	}
	return Span{from, to}
}

// readResponseOf reads the response object of an event, fills its model in and keeps it.
func (s *Stream) readResponseOf(e *responseEvent, ev *Event, final bool) (f responseFacts) {
	if !e.responseAt.Present() {
		return f
	}
	var r jsonx.Reader
	r.ResetAt(ev.Data, e.responseAt.From)
	f = s.readResponse(&r, final)
	if f.status == "failed" || f.status == "cancelled" {
		s.failAs(f.failure, f.status)
	}
	if !f.hasModel && s.options.Model != "" {
		if f.modelAt.Present() {
			s.patch.ReplaceString(f.modelAt.From, f.modelAt.To, s.options.Model)
		} else {
			s.scratch = jsonx.AppendString(s.scratch[:0], s.options.Model)
			s.patch.InsertMember(ev.Data, f.open, "model", s.scratch)
		}
	}
	if raw := e.responseAt.Of(ev.Data); len(raw) <= maxKept {
		s.response = append(s.response[:0], raw...)
	}
	return f
}

// readProduct reads what an event in the middle of a response produces.
func (s *Stream) readProduct(e *responseEvent) Product {
	switch string(e.kind) {
	case "response.output_item.added", "response.output_item.done":
		return s.readItemEvent(e)
	case "response.output_text.delta":
		return s.readDeltaEvent(e, Content)
	case "response.refusal.delta":
		return s.readDeltaEvent(e, Refused)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return s.readDeltaEvent(e, ToolCalled)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta",
		"response.reasoning.delta", "response.reasoning_summary.delta":
		return productIf(len(e.delta) > 0, Reasoning)
	case "response.audio.delta", "response.audio.transcript.delta", "response.output_audio.delta":
		return productIf(len(e.delta) > 0, Media)
	case "response.output_text.done":
		return productIf(len(e.text) > 0, Content)
	case "response.refusal.done":
		return productIf(len(e.text) > 0, Refused)
	case "response.function_call_arguments.done":
		return productIf(len(e.text) > 0, ToolCalled)
	}
	if bytes.Contains(e.kind, []byte("_call")) || bytes.Contains(e.kind, []byte(".mcp_")) {
		return HostedTool
	}
	return 0
}

func productIf(there bool, p Product) Product {
	if there {
		return p
	}
	return 0
}

func (s *Stream) readDeltaEvent(e *responseEvent, p Product) Product {
	if len(e.delta) == 0 {
		return 0
	}
	if it := s.item(e.index); it != nil && !it.done {
		if it.spoke = true; p != Refused {
			s.keep(&it.text, e.delta)
		}
	}
	if p == Content && s.options.KeepText {
		c := s.record.choice(0)
		c.text = jsonx.AppendDecoded(c.text, e.delta)
	}
	return p
}

func (s *Stream) readItemEvent(e *responseEvent) Product {
	if !e.itemAt.Present() {
		return 0
	}
	done := string(e.kind) == "response.output_item.done"
	var r jsonx.Reader
	r.ResetAt(s.json.Document(), e.itemAt.From)
	it := s.item(e.index)
	text := done && s.options.KeepText && it != nil && !it.spoke
	p := s.readItem(&r, done, text)
	if it != nil {
		it.done, it.call = done, p&ToolCalled != 0
		s.kept -= len(it.raw)
		it.raw = it.raw[:0]
		s.keep(&it.raw, e.itemAt.Of(s.json.Document()))
		if done {
			s.kept -= len(it.text)
			it.text = it.text[:0]
		}
	}
	return p
}
