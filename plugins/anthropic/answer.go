package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// kind is what the open block of an answer is.
type kind uint32

const (
	nothing  kind = iota
	textual       // text
	thinking      // thinking that may be shown
	calling       // a call of one of the caller's tools
	called        // such a call that came whole with its start
	replying      // the call by which the model gives its answer as JSON
	replied       // such a one that came whole with its start
	hidden        // a tool that the provider runs, its result, and what is not known
)

// answer makes the caller's answer of the blocks, one after the other. A stream and a whole answer
// go through the same calls.
type answer struct {
	out chat.Out

	tool   []byte // the one by which the model gives its answer as JSON; empty without
	kind   kind
	index  uint64 // of the open block
	blocks bool   // there was one
	filled bool   // a reply has contents

	place     position // of the next item of provider_data
	bytes     uint64   // of the open block's thinking
	unsigned  uint64   // of thinking that nobody signed, since the last item
	signature []byte   // of the open block, the contents of a JSON string

	held []byte // text before a reply, the contents of a JSON string

	counted bool       // there was a usage
	usage   chat.Usage // as far as it is known
	input   [3]uint64  // what Prompt consists of: fresh, read from the cache, written into it
	ended   uint32     // the reason to finish, a chat.Reason, once it is known
}

// What a state has room for, of a signature that comes in parts and of text before a reply.
const (
	mostSignature = 16 << 10
	mostHeld      = 8 << 10
)

var errHeld = interlock.Malformed("a block is larger than can be kept until it is whole")

// start opens a block, of a stream without its contents and of a whole answer with them.
func (a *answer) start(block json.Value) error {
	a.blocks = true
	var what, text, id, name, input, signature, data json.Value
	for key, v := range block.Members() {
		switch string(key) {
		case "type":
			what = v
		case "text", "thinking":
			text = v
		case "id":
			id = v
		case "name":
			name = v
		case "input":
			input = v
		case "signature":
			signature = v
		case "data":
			data = v
		}
	}
	switch word := what.Text(); string(word) {
	case "text":
		a.kind = textual
		return a.text(text)
	case "thinking":
		a.kind = thinking
		a.reasoning(text)
		return a.sign(signature)
	case "redacted_thinking":
		a.kind = hidden
		a.redacted(data)
	case "tool_use":
		a.startCall(id, name, input)
	default:
		a.kind = hidden
	}
	return nil
}

// text adds visible text. Where the answer is to come as JSON, text may be a preamble, and it
// waits until that is known.
func (a *answer) text(v json.Value) error {
	if !v.IsString() {
		return nil
	}
	if len(a.tool) == 0 {
		a.place.text += v.DecodedLen()
		a.out.Text(0, v)
		return nil
	}
	a.held = json.AppendContents(a.held[:len(a.held):len(a.held)], v)
	if len(a.held) > mostHeld {
		return errHeld
	}
	return nil
}

// release says the text that waited: it was no preamble.
func (a *answer) release() {
	if len(a.held) > 0 {
		v := json.Value(append(append([]byte{'"'}, a.held...), '"'))
		a.place.text += v.DecodedLen()
		a.out.Text(0, v)
		a.held = nil
	}
}

func (a *answer) reasoning(v json.Value) {
	a.bytes += uint64(v.DecodedLen())
	a.out.Reasoning(0, v)
}

// sign adds to the open block's signature. One that a state could not hold ends the block: no
// other part of it follows such a large one.
func (a *answer) sign(v json.Value) error {
	raw := v.Contents()
	if len(raw) == 0 {
		return nil
	}
	if a.kind != thinking {
		return interlock.Malformed("a signature came without its block")
	}
	a.signature = append(a.signature[:len(a.signature):len(a.signature)], raw...)
	if len(a.signature) > mostSignature {
		a.close()
		a.kind = hidden
	}
	return nil
}

// redacted keeps thinking that only the provider can read.
func (a *answer) redacted(v json.Value) {
	if v.IsString() && len(v) > 2 {
		a.skipped()
		b := a.place.append(newItem(typeRedacted))
		a.out.Opaque(0, append(json.AppendMember(b, "data", v), '}'))
	}
}

// skipped says in provider_data how much thinking before the next item nobody signed.
func (a *answer) skipped() {
	if a.unsigned > 0 {
		a.out.Opaque(0, append(json.AppendUint(newItem(typeUnsigned), "reasoning_bytes", a.unsigned), '}'))
		a.unsigned = 0
	}
}

func (a *answer) startCall(id, name, input json.Value) {
	whole := !input.Empty()
	if len(a.tool) > 0 && string(name.Text()) == string(a.tool) {
		a.kind, a.filled = replying, false
		a.held = nil
		if whole {
			a.kind = replied
			a.out.Text(0, json.AppendQuoteRaw(nil, json.Compact(nil, input)))
		}
		return
	}
	a.kind = calling
	a.release()
	a.out.ToolCall(0, id, name)
	a.place.calls++
	if whole {
		a.kind = called
		a.out.ArgumentsJSON(0, input)
	}
}

// close ends the open block.
func (a *answer) close() {
	switch a.kind {
	case calling, called:
		a.out.EndCall(0)
	case replying:
		if !a.filled {
			a.out.Text(0, json.Value(`"{}"`))
		}
	case thinking:
		a.closeThinking()
	}
	a.kind = nothing
}

func (a *answer) closeThinking() {
	if len(a.signature) == 0 {
		a.unsigned += a.bytes
		a.bytes = 0
		return
	}
	a.skipped()
	b := newItem(typeThinking)
	if a.bytes > 0 {
		b = json.AppendUint(b, "reasoning_bytes", a.bytes)
	}
	b = append(json.AppendKey(a.place.append(b), "signature"), '"')
	a.out.Opaque(0, append(append(b, a.signature...), `"}`...))
	a.bytes, a.signature = 0, nil
}

// stop notes why the answer ends. Details are of a refusal.
func (a *answer) stop(reason, details json.Value) {
	switch word := reason.Text(); string(word) {
	case "":
		return
	case "max_tokens", "model_context_window_exceeded":
		a.ended = uint32(chat.Length)
	case "refusal":
		a.close()
		a.release()
		a.out.Refusal(0, details.Get("explanation"))
		a.ended = uint32(chat.ContentFilter)
	default: // end_turn, stop_sequence, pause_turn, tool_use; with a call it becomes tool_calls
		a.ended = uint32(chat.Stop)
	}
}

// finish ends the answer, whose reason is known.
func (a *answer) finish() {
	a.close()
	a.release()
	a.out.Finish(0, chat.Reason(a.ended))
	if a.counted {
		a.out.Usage(a.usage)
	}
}

// count takes over counts: later ones replace earlier ones, as far as they are there. What came
// from the cache and what went into it is not among the input.
func (a *answer) count(v json.Value) {
	a.counted = a.counted || v.IsObject()
	for key, v := range v.Members() {
		at := -1
		switch string(key) {
		case "input_tokens":
			at = 0
		case "cache_read_input_tokens":
			at = 1
		case "cache_creation_input_tokens":
			at = 2
		case "output_tokens":
			if n, ok := v.Uint(); ok {
				a.usage.Completion = n
			}
		case "output_tokens_details":
			if n, ok := v.Get("thinking_tokens").Uint(); ok {
				a.usage.Reasoning = n
			}
		}
		if n, ok := v.Uint(); ok && at >= 0 {
			a.input[at] = n
		}
	}
	a.usage.Cached, a.usage.CacheWrite = a.input[1], a.input[2]
	a.usage.Prompt = a.input[0] + a.input[1] + a.input[2]
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	var id, content, reason, details, usage json.Value
	for key, v := range root.Members() {
		switch string(key) {
		case "id":
			id = v
		case "content":
			content = v
		case "stop_reason":
			reason = v
		case "stop_details":
			details = v
		case "usage":
			usage = v
		case "error":
			if v.IsObject() {
				f := readError(v)
				return nil, &f
			}
		}
	}
	if !content.IsArray() {
		return nil, interlock.Malformed("the answer has no content")
	}
	a := answer{out: chat.NewWhole(c)}
	if !a.load(c.State) {
		return nil, errState
	}
	a.out.Begin(id, 0)
	for block := range content.Items() {
		if err := a.start(block); err != nil {
			return nil, err
		}
		a.close()
	}
	a.count(usage)
	if a.stop(reason, details); a.ended == 0 {
		return nil, interlock.Malformed("the answer does not say why it ended")
	}
	a.finish()
	return a.out.AppendBody(dst), nil
}
