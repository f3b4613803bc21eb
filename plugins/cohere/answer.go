package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// mostPlan is how long a plan may be to be kept until it is whole: a state has room for it.
const mostPlan = 24 << 10

// answer makes the caller's answer. A stream and a whole answer go through the same calls.
type answer struct {
	out      chat.Out
	thinking uint64 // bytes of the open block of reasoning
	plan     []byte // the contents of a JSON string
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	if c.Endpoint == "embeddings" {
		return embedded(c, root, dst)
	}
	var id, message, reason, usage json.Value
	for key, v := range root.Members() {
		switch string(key) {
		case "id":
			id = v
		case "message":
			message = v
		case "finish_reason":
			reason = v
		case "usage":
			usage = v
		}
	}
	if message.IsString() { // an error is as long as it is text
		f := read(root, 0)
		return nil, &f
	}
	if !message.IsObject() {
		return nil, interlock.Malformed("the answer has no message")
	}
	a := answer{out: chat.NewWhole(c)}
	a.begin(id)
	a.message(message)
	if err := a.end(reason, nil); err != nil {
		return nil, err
	}
	if u, ok := readUsage(usage); ok {
		a.out.Usage(u)
	}
	return a.out.AppendBody(dst), nil
}

func (a *answer) begin(id json.Value) {
	if !id.IsString() {
		id = nil
	}
	a.out.Begin(id, 0)
}

// message says a whole message.
func (a *answer) message(v json.Value) {
	var content, plan, calls json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "content":
			content = v
		case "tool_plan":
			plan = v
		case "tool_calls":
			calls = v
		}
	}
	if content.IsString() {
		a.text(content)
	}
	for part := range content.Items() {
		a.part(part)
	}
	a.planned(plan)
	for call := range calls.Items() {
		a.call(call)
	}
}

// part takes a block of content, or a part of one: text or reasoning.
func (a *answer) part(v json.Value) {
	for key, v := range v.Members() {
		switch string(key) {
		case "text":
			a.text(v)
		case "thinking":
			if v.IsString() && !v.Empty() {
				a.thinking += uint64(v.DecodedLen())
				a.out.Reasoning(0, v)
			}
		}
	}
}

func (a *answer) text(text json.Value) {
	if !text.Empty() {
		a.closeThinking()
		a.out.Text(0, text)
	}
}

// planned adds to the plan. It is no text of the answer: it waits until it is whole, and leaves as
// what has to come back. One that is too long for that is forgotten.
func (a *answer) planned(text json.Value) {
	if text.IsString() && len(a.plan) <= mostPlan {
		a.plan = json.AppendContents(a.plan[:len(a.plan):len(a.plan)], text)
	}
}

// call begins a call, in a whole answer with all of its arguments.
func (a *answer) call(v json.Value) {
	a.closeThinking()
	function := v.Get("function")
	a.out.ToolCall(0, v.Get("id"), function.Get("name"))
	a.arguments(function.Get("arguments"))
}

func (a *answer) arguments(args json.Value) {
	if args.IsString() {
		a.out.Arguments(0, args)
	} else {
		a.out.ArgumentsJSON(0, args)
	}
}

// closeThinking keeps of a block of reasoning what it takes to send it back.
func (a *answer) closeThinking() {
	if a.thinking > 0 {
		b := json.AppendUint(newItem(typeThinking), "reasoning_bytes", a.thinking)
		a.out.Opaque(0, append(b, '}'))
		a.thinking = 0
	}
}

func newItem(kind string) []byte {
	b := json.AppendText(append(make([]byte, 0, 256), '{'), "provider", name)
	return json.AppendText(b, "type", kind)
}

// end ends the answer for the provider's reason. message is what it says where that is an error.
func (a *answer) end(reason, message json.Value) error {
	a.closeThinking()
	if n := len(a.plan); n > 0 && n <= mostPlan {
		b := append(json.AppendKey(newItem(typePlan), "text"), '"')
		a.out.Opaque(0, append(append(b, a.plan...), `"}`...))
	}
	a.plan = nil
	switch word := reason.String(); word {
	case "":
		return interlock.Malformed("the answer does not say why it ended")
	case "MAX_TOKENS":
		a.out.Finish(0, chat.Length)
	case "ERROR_TOXIC":
		a.out.Finish(0, chat.ContentFilter)
	case "ERROR", "TIMEOUT":
		f := &interlock.Failure{Class: interlock.ServerError, Type: word, Message: message.String()}
		if word == "TIMEOUT" {
			f.Class = interlock.Timeout
		}
		return f
	default: // COMPLETE, STOP_SEQUENCE, TOOL_CALL; with a call it becomes tool_calls
		a.out.Finish(0, chat.Stop)
	}
	return nil
}

// readUsage reads what the model took. What is billed is less: the provider's own words before the
// conversation are not.
func readUsage(v json.Value) (u chat.Usage, ok bool) {
	if !v.IsObject() {
		return u, false
	}
	tokens := v.Get("tokens")
	if !tokens.IsObject() {
		tokens = v.Get("billed_units")
	}
	for key, v := range tokens.Members() {
		n, _ := v.Uint()
		switch string(key) {
		case "input_tokens":
			u.Prompt = n
		case "output_tokens":
			u.Completion = n
		case "reasoning_tokens":
			u.Reasoning = n
		}
	}
	u.Cached, _ = v.Get("cached_tokens").Uint()
	return u, true
}
