package chat

import (
	"strconv"

	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// openHead begins a chunk, up to the value of choices. All chunks of one call begin alike: the
// first one's head is copied for the others.
func (o *Out) openHead() []byte {
	b := o.events.Open("")
	if o.headEnd > 0 {
		return append(b, b[o.headAt:o.headEnd]...)
	}
	o.headAt = len(b)
	b = o.appendHead(b, "chat.completion.chunk")
	o.headEnd = len(b)
	return b
}

// appendHead appends an object's members up to the value of choices.
func (o *Out) appendHead(b []byte, object string) []byte {
	o.Begin(nil, 0)
	b = append(append(append(b, `{"id":"`...), o.id...), `","object":"`...)
	b = append(append(b, object...), `","created":`...)
	b = strconv.AppendUint(b, o.created, 10)
	b = append(b, `,"model":`...)
	b = json.AppendQuote(b, o.call.Model)
	return append(b, `,"choices":`...)
}

// openChunk begins a chunk of one choice, up to the value of delta.
func (o *Out) openChunk(index int) []byte {
	b := o.openHead()
	b = append(b, `[{"index":`...)
	b = strconv.AppendUint(b, uint64(index), 10)
	return append(b, `,"delta":`...)
}

// openDelta begins a chunk whose delta has one member, up to its value. The first of a choice
// has the role too.
func (o *Out) openDelta(c *choice, index int, key string) []byte {
	b := append(o.openChunk(index), '{')
	if !c.seen {
		c.seen = true
		b = append(b, `"role":"assistant",`...)
	}
	return append(append(append(b, '"'), key...), `":`...)
}

func (o *Out) closeDelta(b []byte) { o.events.Close(append(b, `},"finish_reason":null}]}`...)) }

// delta emits a delta with one member, a string.
func (o *Out) delta(c *choice, index int, key string, text json.Value) {
	b := append(o.openDelta(c, index, key), '"')
	b = json.AppendContents(b, text)
	o.closeDelta(append(b, '"'))
}

// openArguments begins a delta with a part of the open call's arguments, up to its contents.
func (o *Out) openArguments(c *choice, index int) []byte {
	b := append(o.openDelta(c, index, "tool_calls"), `[{"index":`...)
	b = strconv.AppendUint(b, uint64(c.calls-1), 10)
	return append(b, `,"function":{"arguments":"`...)
}

// appendCall appends a call's members from its ID to the contents of its arguments.
func (o *Out) appendCall(b []byte, index int, n uint32, id, name json.Value) []byte {
	b = append(b, `"id":"`...)
	if id.Empty() || !id.IsString() {
		b = append(b, "call_"...)
		b = json.AppendEscaped(b, o.call.RequestID)
		if index > 0 {
			b = append(b, '_')
			b = strconv.AppendUint(b, uint64(index), 10)
		}
		b = append(b, '_')
		b = strconv.AppendUint(b, uint64(n), 10)
	} else {
		b = json.AppendContents(b, id)
	}
	b = append(b, `","type":"function","function":{"name":"`...)
	b = json.AppendContents(b, name)
	return append(b, `","arguments":"`...)
}

// appendArguments appends a value's JSON text as the contents of a string.
func appendArguments(b []byte, v json.Value) []byte {
	at := len(b)
	b = json.Compact(b, v)
	text := len(b)
	b = json.AppendEscaped(b, b[at:text])
	return append(b[:at], b[text:]...)
}

func (u *Usage) append(b []byte) []byte {
	total := u.Prompt + u.Completion
	if total < u.Prompt {
		total = 1<<64 - 1
	}
	b = json.AppendUint(append(b, '{'), "prompt_tokens", u.Prompt)
	b = json.AppendUint(b, "completion_tokens", u.Completion)
	b = json.AppendUint(b, "total_tokens", total)
	b = append(json.AppendKey(b, "prompt_tokens_details"), '{')
	b = json.AppendUint(b, "cached_tokens", u.Cached)
	if u.CacheWrite > 0 {
		b = json.AppendUint(b, "cache_write_tokens", u.CacheWrite)
	}
	b = append(json.AppendKey(append(b, '}'), "completion_tokens_details"), '{')
	b = json.AppendUint(b, "reasoning_tokens", u.Reasoning)
	return append(b, "}}"...)
}
