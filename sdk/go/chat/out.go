package chat

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Reason is why a choice ended. There is no other than OpenAI's.
type Reason uint8

// The finish reasons.
const (
	Stop Reason = iota + 1 // with a tool call in the choice it becomes ToolCalls
	Length
	ToolCalls
	ContentFilter
)

var reasonWords = [...]string{"", "stop", "length", "tool_calls", "content_filter"}

// String is OpenAI's word.
func (r Reason) String() string {
	if int(r) >= len(reasonWords) {
		r = 0
	}
	return reasonWords[r]
}

// Usage is what an answer used, as OpenAI counts: Prompt includes Cached and CacheWrite,
// Completion includes Reasoning.
type Usage struct {
	Prompt, Completion            uint64
	Cached, CacheWrite, Reasoning uint64
}

const (
	fewChoices = 2
	maxChoices = 128
	maxCalls   = 1 << 16
	// maxOpaque is how much provider_data is kept for one delta: a state has room for it.
	maxOpaque = 32 << 10
)

// Out makes an answer. The same calls make a stream's chunks (NewChunks) or a whole answer
// (NewWhole), and both say the same. Where a method wants a string it takes the JSON string
// value as it is written and ignores one that is absent, null or no string.
//
// Put it in a local variable; a steady stream then allocates nothing. An Out must not be copied
// once it is in use.
type Out struct {
	events *interlock.Events // nil: a whole answer
	call   *interlock.Call

	begun   bool
	counted bool
	id      []byte // contents of a JSON string
	created uint64 // seconds
	usage   Usage
	few     [fewChoices]choice
	more    []choice

	headAt, headEnd int // in what is emitted: the head of this call's first chunk
}

// choice is what is known of one choice.
type choice struct {
	seen   bool // something was said
	text   bool
	spoke  bool // a refusal or a call: content may stay null
	open   bool // a tool call is open
	filled bool // and has arguments
	reason Reason
	calls  uint32
	opaque []byte // items, each behind a comma

	// Of a whole answer only.
	content   []byte // contents of JSON strings
	reasoning []byte
	refusal   []byte
	refused   bool
	reasoned  bool
	called    []byte // items of tool_calls; the open one lacks the end
}

// NewChunks returns an Out that emits chunks. Load c.State into it before anything else.
func NewChunks(c *interlock.Call, e *interlock.Events) Out { return Out{call: c, events: e} }

// NewWhole returns an Out that gathers an answer for AppendBody.
func NewWhole(c *interlock.Call) Out { return Out{call: c} }

// Begin gives the answer's ID, a string, and when it was made, in seconds since 1970. What is
// absent, and what is 0, is made from the call. Only the first time counts, and only before
// anything is said. It emits nothing.
func (o *Out) Begin(id json.Value, created uint64) {
	if o.begun {
		return
	}
	o.begun = true
	if created == 0 {
		created = o.call.Now / 1000
	}
	o.created = created
	if id.Empty() {
		o.id = append(o.id[:0], "chatcmpl-"...)
		o.id = json.AppendEscaped(o.id, o.call.RequestID)
	} else {
		o.id = json.AppendContents(o.id[:0], id)
	}
}

// Begun says whether Begin was called or something emitted, in this call or before.
func (o *Out) Begun() bool { return o.begun }

// choice returns the record of that choice; nil for an index that is not to be believed.
func (o *Out) choice(index int) *choice {
	if index < 0 || index >= maxChoices {
		return nil
	}
	if index < fewChoices {
		return &o.few[index]
	}
	for len(o.more) <= index-fewChoices {
		o.more = append(o.more, choice{})
	}
	return &o.more[index-fewChoices]
}

// unfinished returns the record of a choice to which something may be added, else nil.
func (o *Out) unfinished(index int) *choice {
	c := o.choice(index)
	if c == nil || c.reason != 0 {
		return nil
	}
	return c
}

// each is how many choices there are records of.
func (o *Out) each() int { return fewChoices + len(o.more) }

// Calls is how many tool calls the choice has so far.
func (o *Out) Calls(index int) int {
	if c := o.choice(index); c != nil {
		return int(c.calls)
	}
	return 0
}

// Finished is why the choice ended, 0 when it has not.
func (o *Out) Finished(index int) Reason {
	if c := o.choice(index); c != nil {
		return c.reason
	}
	return 0
}

// Text adds to the visible text.
func (o *Out) Text(index int, text json.Value) {
	if c := o.unfinished(index); c != nil && !text.Empty() && text.IsString() {
		c.text = true
		if o.events == nil {
			c.seen = true
			c.content = json.AppendContents(c.content, text)
			return
		}
		o.delta(c, index, "content", text)
	}
}

// Reasoning adds to the reasoning that may be shown: reasoning_content.
func (o *Out) Reasoning(index int, text json.Value) {
	if c := o.unfinished(index); c != nil && !text.Empty() && text.IsString() {
		if o.events == nil {
			c.seen, c.reasoned = true, true
			c.reasoning = json.AppendContents(c.reasoning, text)
			return
		}
		o.delta(c, index, "reasoning_content", text)
	}
}

// Refusal adds to the text in which the model declines.
func (o *Out) Refusal(index int, text json.Value) {
	if c := o.unfinished(index); c != nil && !text.Empty() && text.IsString() {
		c.spoke = true
		if o.events == nil {
			c.seen, c.refused = true, true
			c.refusal = json.AppendContents(c.refusal, text)
			return
		}
		o.delta(c, index, "refusal", text)
	}
}

// ToolCall begins a call of a tool and ends the one before. Its index counts from 0. Without an
// ID it gets one that is made of the request's.
func (o *Out) ToolCall(index int, id, name json.Value) {
	c := o.unfinished(index)
	if c == nil || c.calls >= maxCalls {
		return
	}
	o.endCall(c, index)
	n := c.calls
	c.calls++
	c.open, c.filled, c.spoke = true, false, true
	if o.events == nil {
		c.seen = true
		c.called = append(json.AppendComma(c.called), '{')
		c.called = o.appendCall(c.called, index, n, id, name)
		return
	}
	b := o.openDelta(c, index, "tool_calls")
	b = append(b, `[{"index":`...)
	b = strconv.AppendUint(b, uint64(n), 10)
	b = append(b, ',')
	b = o.appendCall(b, index, n, id, name)
	b = append(b, `"}}]`...)
	o.closeDelta(b)
}

// Arguments adds to the JSON of the open call's arguments: text is a string that holds a part of
// it.
func (o *Out) Arguments(index int, text json.Value) {
	c := o.unfinished(index)
	if c == nil || !c.open || text.Empty() || !text.IsString() {
		return
	}
	c.filled = true
	if o.events == nil {
		c.called = json.AppendContents(c.called, text)
		return
	}
	b := o.openArguments(c, index)
	b = json.AppendContents(b, text)
	o.closeDelta(append(b, `"}}]`...))
}

// ArgumentsJSON adds the arguments as the value itself. One that is absent or null adds nothing.
func (o *Out) ArgumentsJSON(index int, v json.Value) {
	c := o.unfinished(index)
	if c == nil || !c.open || v.IsNull() {
		return
	}
	c.filled = true
	if o.events == nil {
		c.called = appendArguments(c.called, v)
		return
	}
	b := o.openArguments(c, index)
	b = appendArguments(b, v)
	o.closeDelta(append(b, `"}}]`...))
}

// EndCall ends the open call, if there is one: without arguments its arguments are `{}`. ToolCall
// and Finish do it too.
func (o *Out) EndCall(index int) {
	if c := o.choice(index); c != nil {
		o.endCall(c, index)
	}
}

func (o *Out) endCall(c *choice, index int) {
	if !c.open {
		return
	}
	if !c.filled {
		o.ArgumentsJSON(index, json.Value("{}"))
	}
	c.open = false
	if o.events == nil {
		c.called = append(c.called, `"}}`...)
	}
}

// Opaque keeps an item of provider_data: an object with the adapter's name as "provider", a
// "type", and what has to come back byte for byte in a later request. Reasoning that belongs to
// it is not repeated in it: "reasoning_bytes" says how many bytes of the reasoning's text, behind
// those of the items before, are its own.
//
// The items leave in one delta just before the finish; where they are so many that a state could
// not hold them, in several.
func (o *Out) Opaque(index int, item json.Value) {
	c := o.unfinished(index)
	if c == nil || !item.IsObject() {
		return
	}
	if o.events == nil {
		c.seen = true
	} else if len(c.opaque) > 0 && len(c.opaque)+len(item) > maxOpaque {
		o.flushOpaque(c, index)
	}
	if len(c.opaque) > 0 {
		c.opaque = append(c.opaque, ',')
	}
	c.opaque = json.Compact(c.opaque, item)
	if o.events != nil && len(c.opaque) > maxOpaque {
		o.flushOpaque(c, index)
	}
}

func (o *Out) flushOpaque(c *choice, index int) {
	if len(c.opaque) == 0 {
		return
	}
	b := o.openDelta(c, index, "provider_data")
	b = append(append(b, '['), c.opaque...)
	o.closeDelta(append(b, ']'))
	c.opaque = nil // may alias the state handed in
}

// Finish ends a choice. Only the first time counts, and what is said of the choice afterwards is
// dropped: where a provider gives the reason before the rest, keep it until the end.
func (o *Out) Finish(index int, reason Reason) {
	c := o.unfinished(index)
	if c == nil || reason.String() == "" {
		return
	}
	o.endCall(c, index)
	if reason == Stop && c.calls > 0 {
		reason = ToolCalls
	}
	if o.events == nil {
		c.seen = true
		c.reason = reason
		return
	}
	if !c.text && !c.spoke {
		o.closeDelta(append(o.openDelta(c, index, "content"), `""`...))
	}
	o.flushOpaque(c, index)
	c.reason = reason
	b := o.openChunk(index)
	b = append(append(append(b, `{},"finish_reason":"`...), reason.String()...), `"}]}`...)
	o.events.Close(b)
}

// Usage gives the counts. Only the first time counts; in a stream it should come last.
func (o *Out) Usage(u Usage) {
	if o.counted {
		return
	}
	o.counted = true
	u.Cached = min(u.Cached, u.Prompt)
	u.CacheWrite = min(u.CacheWrite, u.Prompt-u.Cached)
	u.Reasoning = min(u.Reasoning, u.Completion)
	o.usage = u
	if o.events == nil {
		return
	}
	b := o.openHead()
	b = append(b, `[],"usage":`...)
	b = u.append(b)
	o.events.Close(append(b, '}'))
}
