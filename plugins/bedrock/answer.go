package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// kind is what the open block of an answer is.
type kind uint32

const (
	nothing  kind = iota
	textual       // text, which has no start
	thinking      // reasoning, which has none either
	calling       // a call of one of the caller's tools
	replying      // the call by which the model gives its answer as JSON
	hidden        // a tool that the provider runs, its result, and what is not known
)

// answer makes the caller's answer of the blocks, one after the other. A stream and a whole answer
// go through the same calls.
type answer struct {
	out  chat.Out
	call *interlock.Call

	tool   []byte // the one by which the model gives its answer as JSON; empty without
	kind   kind
	index  uint64 // of the open block
	filled bool   // the reply has contents: there is no other, and no text besides it

	bytes     uint64 // of the open block's reasoning
	unsigned  uint64 // of reasoning that nobody signed, since the last item
	signature []byte // of the open block, the contents of a JSON string

	held []byte // text before a reply, the contents of a JSON string

	counted bool // usage came before the end
	usage   chat.Usage
}

// mostHeld is how much of a signature, or of text before a reply, a state has room for.
const mostHeld = 24 << 10

var errHeld = interlock.Malformed("a block is larger than can be kept until it is whole")

// text adds visible text. Where the answer is to come as JSON, text may be a preamble, and it
// waits until that is known.
func (a *answer) text(v json.Value) error {
	if len(a.tool) == 0 {
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
	if len(a.held) > 0 && !a.filled {
		a.out.Text(0, append(append([]byte{'"'}, a.held...), '"'))
	}
	a.held = nil
}

func (a *answer) reasoning(v json.Value) {
	a.kind = thinking
	a.bytes += uint64(v.DecodedLen())
	a.out.Reasoning(0, v)
}

func (a *answer) sign(v json.Value) error {
	a.kind = thinking
	a.signature = append(a.signature[:len(a.signature):len(a.signature)], v.Contents()...)
	if len(a.signature) > mostHeld {
		return errHeld
	}
	return nil
}

// redacted keeps reasoning that only the provider can read.
func (a *answer) redacted(v json.Value) {
	a.kind = thinking
	if v.IsString() && len(v) > 2 {
		b := a.item(typeRedacted)
		a.out.Opaque(0, append(json.AppendMember(b, "data", v), '}'))
	}
}

func (a *answer) item(kind string) []byte {
	b := json.AppendText(append(make([]byte, 0, 256), '{'), "provider", name)
	b = json.AppendText(b, "type", kind)
	return json.AppendText(b, "vendor", vendor(a.call.Model))
}

// start opens the block of a tool.
func (a *answer) start(tool json.Value) {
	name := tool.Get("name")
	switch {
	case tool.Get("type").Is("server_tool_use"):
		a.kind = hidden
	case len(a.tool) > 0 && string(name.Text()) == string(a.tool):
		a.kind = replying
		if a.filled {
			a.kind = hidden
		}
		a.held = nil
	default:
		a.kind = calling
		a.release()
		a.out.ToolCall(0, tool.Get("toolUseId"), name)
	}
}

// close ends the open block.
func (a *answer) close() {
	switch a.kind {
	case calling:
		a.out.EndCall(0)
	case replying:
		if !a.filled {
			a.filled = true
			a.out.Text(0, json.Value(`"{}"`))
		}
	case thinking:
		a.closeReasoning()
	}
	a.kind = nothing
}

func (a *answer) closeReasoning() {
	if len(a.signature) == 0 {
		a.unsigned += a.bytes
		a.bytes = 0
		return
	}
	if a.unsigned > 0 {
		b := json.AppendUint(a.item(typeUnsigned), "reasoning_bytes", a.unsigned)
		a.out.Opaque(0, append(b, '}'))
	}
	b := json.AppendUint(a.item(typeReasoning), "reasoning_bytes", a.bytes)
	b = append(json.AppendKey(b, "signature"), '"')
	b = append(append(b, a.signature...), `"}`...)
	a.out.Opaque(0, b)
	a.bytes, a.unsigned, a.signature = 0, 0, nil
}

// stop ends the answer for the provider's reason.
func (a *answer) stop(reason json.Value) error {
	a.close()
	a.release()
	switch word := reason.Text(); string(word) {
	case "":
		return interlock.Malformed("the answer does not say why it ended")
	case "max_tokens", "model_context_window_exceeded":
		a.out.Finish(0, chat.Length)
	case "guardrail_intervened", "content_filtered", "refusal":
		a.out.Finish(0, chat.ContentFilter)
	case "malformed_model_output", "malformed_tool_use":
		return &interlock.Failure{
			Class: interlock.MalformedAnswer, Type: string(word), Message: "the model's output is malformed",
		}
	default: // end_turn, stop_sequence, tool_use; with a call it becomes tool_calls
		a.out.Finish(0, chat.Stop)
	}
	return nil
}

// readUsage reads usage: what came from the cache and what went into it is not among the input.
func readUsage(v json.Value) (u chat.Usage, ok bool) {
	if !v.IsObject() {
		return u, false
	}
	for key, v := range v.Members() {
		n, _ := v.Uint()
		switch string(key) {
		case "inputTokens":
			u.Prompt += n
		case "outputTokens":
			u.Completion = n
		case "cacheReadInputTokens":
			u.Prompt += n
			u.Cached = n
		case "cacheWriteInputTokens":
			u.Prompt += n
			u.CacheWrite = n
		}
	}
	return u, true
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	content := root.At("output", "message", "content")
	if !content.IsArray() {
		return nil, interlock.Malformed("the answer has no message")
	}
	a := answer{out: chat.NewWhole(c), call: c}
	if !a.load(c.State) {
		return nil, errState
	}
	for block := range content.Items() {
		if err := a.block(block); err != nil {
			return nil, err
		}
		a.close()
	}
	if err := a.stop(root.Get("stopReason")); err != nil {
		return nil, err
	}
	if u, ok := readUsage(root.Get("usage")); ok {
		a.out.Usage(u)
	}
	return a.out.AppendBody(dst), nil
}

// block says a block of a whole answer.
func (a *answer) block(block json.Value) error {
	for key, v := range block.Members() {
		switch string(key) {
		case "text":
			return a.text(v)
		case "citationsContent":
			for part := range v.Get("content").Items() {
				if err := a.text(part.Get("text")); err != nil {
					return err
				}
			}
		case "reasoningContent":
			a.redacted(v.Get("redactedContent"))
			said := v.Get("reasoningText")
			a.reasoning(said.Get("text"))
			return a.sign(said.Get("signature"))
		case "toolUse":
			a.start(v)
			a.input(v.Get("input"))
		}
	}
	return nil
}

// input gives a tool's whole input.
func (a *answer) input(v json.Value) {
	switch {
	case v.IsNull():
	case a.kind == calling:
		a.out.ArgumentsJSON(0, v)
	case a.kind == replying:
		a.filled = true
		a.out.Text(0, json.AppendQuoteRaw(nil, json.Compact(nil, v)))
	}
}
