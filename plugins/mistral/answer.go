package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

const maxChoices = 128

// answer makes the caller's answer. A stream and a whole answer go through the same calls. Usage
// is kept to the end: the provider says it beside the last choice.
type answer struct {
	out     chat.Out
	counted bool
	usage   chat.Usage
	count   int // of choices
	first   choice
	more    []choice
}

// choice is what is known of a choice besides what chat.Out keeps.
type choice struct {
	thinking uint64 // bytes of the open block of reasoning
	open     bool   // a call is open, to which a stream may add arguments
	index    uint64 // of that call
	id       []byte // of that call, the contents of a JSON string; empty where it has none
}

// record returns what is known of the choice with that index. It holds until the next one is
// asked for.
func (a *answer) record(index int) *choice {
	a.count = max(a.count, index+1)
	if index == 0 {
		return &a.first
	}
	for len(a.more) < index {
		a.more = append(a.more, choice{})
	}
	return &a.more[index-1]
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	if c.Endpoint == "embeddings" {
		return embedded(c, root, dst)
	}
	a := answer{out: chat.NewWhole(c)}
	if err := a.chunk(root, true); err != nil {
		return nil, err
	}
	if !a.end() {
		return nil, interlock.Malformed("the answer has no choice that ended")
	}
	return a.out.AppendBody(dst), nil
}

// end gives the usage. whole is false, and nothing is said, while a choice has not ended.
func (a *answer) end() (whole bool) {
	for i := range a.count {
		if a.out.Finished(i) == 0 {
			return false
		}
	}
	if a.count == 0 {
		return false
	}
	if a.counted {
		a.out.Usage(a.usage)
	}
	return true
}

// chunk takes a chunk of a stream, or a whole answer.
func (a *answer) chunk(v json.Value, whole bool) error {
	var id, choices, usage json.Value
	var created uint64
	bad := false
	for key, v := range v.Members() {
		bad = bad || isError(key, v)
		switch string(key) {
		case "id":
			id = v
		case "created":
			created, _ = v.Uint()
		case "choices":
			choices = v
		case "usage":
			usage = v
		}
	}
	if bad {
		f := read(v, 0)
		return &f
	}
	if !choices.IsArray() {
		return interlock.Malformed("there are no choices")
	}
	if !a.out.Begun() {
		if !id.IsString() {
			id = nil
		}
		a.out.Begin(id, created)
	}
	i := 0
	for c := range choices.Items() {
		if err := a.choice(c, i, whole); err != nil {
			return err
		}
		i++
	}
	a.use(usage)
	return nil
}

func (a *answer) choice(v json.Value, index int, whole bool) error {
	var said, list, reason json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "index":
			if n, ok := v.Uint(); ok {
				index = int(min(n, maxChoices))
			}
		case "message", "delta":
			said = v
		case "messages":
			list = v
		case "finish_reason":
			reason = v
		}
	}
	if index >= maxChoices {
		return interlock.Malformed("a choice's index is out of bounds")
	}
	k := a.record(index)
	if said.IsObject() {
		a.message(k, index, said, whole, true)
	} else {
		a.several(k, index, list, whole)
	}
	if reason.Empty() || !reason.IsString() {
		if !whole {
			return nil
		}
		reason = json.Value(`"stop"`) // a whole answer is not cut
	}
	return a.finish(k, index, reason)
}

// several takes the messages of an answer in which the provider ran tools of its own: all the
// text, and the calls of the last, which are the caller's.
func (a *answer) several(k *choice, index int, list json.Value, whole bool) {
	n := 0
	for range list.Items() {
		n++
	}
	for m := range list.Items() {
		n--
		a.message(k, index, m, whole, n == 0)
	}
}

func (a *answer) message(k *choice, index int, v json.Value, whole, withCalls bool) {
	var content, calls json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "role":
			if v.Is("tool") { // the result of a tool that the provider ran
				return
			}
		case "content":
			content = v
		case "tool_calls":
			calls = v
		}
	}
	if content.IsString() {
		a.text(k, index, content)
	}
	for part := range content.Items() {
		a.part(k, index, part)
	}
	if !withCalls {
		return
	}
	i := uint64(0)
	for call := range calls.Items() {
		a.call(k, index, call, i, whole)
		i++
	}
}

func (a *answer) text(k *choice, index int, text json.Value) {
	if !text.Empty() {
		a.closeThinking(k, index, nil)
		a.out.Text(index, text)
	}
}

// part takes a part of content. References to sources and media have no place in OpenAI's format.
func (a *answer) part(k *choice, index int, part json.Value) {
	var kind, text, thinking, signature json.Value
	for key, v := range part.Members() {
		switch string(key) {
		case "type":
			kind = v
		case "text":
			text = v
		case "thinking":
			thinking = v
		case "signature":
			signature = v
		}
	}
	switch {
	case kind.Is("text"):
		a.text(k, index, text)
	case kind.Is("thinking"):
		if thinking.IsString() {
			a.think(k, index, thinking)
		}
		for t := range thinking.Items() {
			a.think(k, index, t.Get("text"))
		}
		if signature.IsString() && !signature.Empty() {
			a.closeThinking(k, index, signature)
		}
	}
}

func (a *answer) think(k *choice, index int, text json.Value) {
	if text.IsString() && !text.Empty() {
		k.thinking += uint64(text.DecodedLen())
		a.out.Reasoning(index, text)
	}
}

// closeThinking keeps of a block of reasoning what it takes to send it back: the provider wants to
// see what its model thought. signature may be nil.
func (a *answer) closeThinking(k *choice, index int, signature json.Value) {
	if k.thinking == 0 && signature == nil {
		return
	}
	b := json.AppendText(append(make([]byte, 0, 96), '{'), "provider", name)
	b = json.AppendText(b, "type", typeThinking)
	b = json.AppendUint(b, "reasoning_bytes", k.thinking)
	a.out.Opaque(index, append(json.AppendMember(b, "signature", signature), '}'))
	k.thinking = 0
}

// call takes a call, or in a stream what adds to the open one: the same index, and no other ID.
func (a *answer) call(k *choice, index int, v json.Value, position uint64, whole bool) {
	var id, function json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "id":
			if v.IsString() && !v.Empty() && !v.Is("null") {
				id = v
			}
		case "index":
			if n, ok := v.Uint(); ok {
				position = n
			}
		case "function":
			function = v
		}
	}
	called, args := function.Get("name"), function.Get("arguments")
	if whole || !k.continues(position, id, called) {
		a.closeThinking(k, index, nil)
		a.out.ToolCall(index, id, called)
		k.open, k.index = true, position
		k.id = append(k.id[:0:0], id.Contents()...)
	}
	if args.IsString() {
		a.out.Arguments(index, args)
	} else {
		a.out.ArgumentsJSON(index, args)
	}
}

// continues says whether what a stream says of a call belongs to the one that is open.
func (k *choice) continues(index uint64, id, called json.Value) bool {
	if !k.open || k.index != index {
		return false
	}
	if id != nil {
		return string(id.Contents()) == string(k.id)
	}
	return called.Empty()
}

func (a *answer) finish(k *choice, index int, reason json.Value) error {
	a.closeThinking(k, index, nil)
	k.open, k.id = false, nil
	switch reason.String() {
	case "length", "model_length":
		a.out.Finish(index, chat.Length)
	case "content_filter":
		a.out.Finish(index, chat.ContentFilter)
	case "error":
		return &interlock.Failure{Class: interlock.ServerError, Type: "error", Message: "the model ended with an error"}
	default: // stop, tool_calls; with a call it becomes tool_calls
		a.out.Finish(index, chat.Stop)
	}
	return nil
}

// use takes usage; where it is said again the last counts.
func (a *answer) use(v json.Value) {
	if !v.IsObject() {
		return
	}
	a.counted, a.usage = true, chat.Usage{}
	u := &a.usage
	details := false
	for key, v := range v.Members() {
		switch string(key) {
		case "prompt_tokens":
			u.Prompt, _ = v.Uint()
		case "completion_tokens":
			u.Completion, _ = v.Uint()
		case "num_cached_tokens":
			if !details {
				u.Cached, _ = v.Uint()
			}
		case "prompt_tokens_details":
			if n, ok := v.Get("cached_tokens").Uint(); ok {
				u.Cached, details = n, true
			}
		case "completion_tokens_details":
			u.Reasoning, _ = v.Get("reasoning_tokens").Uint()
		}
	}
}
