package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

const maxCandidates = 128

// answer is what is known of an answer besides what chat.Out keeps. A finish is held back to the
// end: some models give one with every chunk, and usage comes last.
type answer struct {
	call    *interlock.Call
	blocked bool // the prompt was
	counted bool
	usage   chat.Usage
	count   int // of candidates
	first   candidate
	more    []candidate
}

// candidate is one of the answers to a prompt.
type candidate struct {
	reason   chat.Reason // why it ended, 0 when it has not
	odd      []byte      // the provider's word for a reason that is none of OpenAI's
	message  []byte      // what it says about it
	said     bool        // there is text or a call
	text     uint64      // bytes of visible text
	unsigned uint64      // bytes of reasoning behind the last signed part of it
	open     bool        // a call is open whose arguments come in parts
	id       []byte      // of that call, a JSON string
	own      bool        // and it is the provider's
	args     arguments
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() && !root.IsArray() {
		return nil, malformed("the answer is neither a JSON object nor an array")
	}
	if c.Endpoint == "embeddings" {
		if e := root.Get("error"); !e.IsNull() {
			f := failure(e, 0)
			return nil, &f
		}
		return embedded(c, root, dst)
	}
	o := chat.NewWhole(c)
	a := answer{call: c}
	if err := a.value(&o, root); err != nil {
		return nil, err
	}
	for i := range a.count {
		if k := a.record(i); k.reason == 0 && k.said {
			k.reason = chat.Stop // a whole answer is not cut
		}
	}
	whole, err := a.end(&o)
	if err != nil {
		return nil, err
	}
	if !whole {
		return nil, malformed("the answer has no candidate that ended")
	}
	return o.AppendBody(dst), nil
}

// value takes a GenerateContentResponse, or an array of them.
func (a *answer) value(o *chat.Out, v json.Value) error {
	if v.IsArray() {
		for item := range v.Items() {
			if err := a.chunk(o, item); err != nil {
				return err
			}
		}
		return nil
	}
	return a.chunk(o, v)
}

func (a *answer) chunk(o *chat.Out, v json.Value) error {
	var candidates json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "candidates":
			candidates = v
		case "promptFeedback":
			why := v.Get("blockReason")
			a.blocked = a.blocked || !why.Empty() && !is(why, "BLOCK_REASON_UNSPECIFIED")
		case "usageMetadata":
			a.use(v)
		case "responseId":
			if v.IsString() && !o.Begun() {
				o.Begin(v, 0)
			}
		case "error":
			if !v.IsNull() {
				f := failure(v, 0)
				return &f
			}
		}
	}
	i := 0
	for v := range candidates.Items() {
		if err := a.candidate(o, v, i); err != nil {
			return err
		}
		i++
	}
	return nil
}

// use takes usage as it grows: the last that says something counts.
func (a *answer) use(v json.Value) {
	var prompt, tools, answered, thoughts, cached uint64
	known := false
	for key, v := range v.Members() {
		n, ok := v.Uint()
		if !ok {
			continue
		}
		switch string(key) {
		case "promptTokenCount":
			prompt, known = n, true
		case "toolUsePromptTokenCount":
			tools, known = n, true
		case "candidatesTokenCount":
			answered, known = n, true
		case "thoughtsTokenCount":
			thoughts, known = n, true
		case "cachedContentTokenCount":
			cached = n
		}
	}
	if known {
		a.counted = true
		a.usage = chat.Usage{
			Prompt: add(prompt, tools), Completion: add(answered, thoughts), Cached: cached, Reasoning: thoughts,
		}
	}
}

func add(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

// record returns what is known of the candidate with that index. It holds until the next one is
// asked for.
func (a *answer) record(index int) *candidate {
	a.count = max(a.count, index+1)
	if index == 0 {
		return &a.first
	}
	for len(a.more) < index {
		a.more = append(a.more, candidate{})
	}
	return &a.more[index-1]
}

func (a *answer) candidate(o *chat.Out, v json.Value, index int) error {
	var content, reason, message json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "index":
			if n, ok := v.Uint(); ok {
				index = int(min(n, maxCandidates))
			}
		case "content":
			content = v
		case "finishReason":
			reason = v
		case "finishMessage":
			message = v
		}
	}
	if index >= maxCandidates {
		return malformed("a candidate's index is out of bounds")
	}
	k := a.record(index)
	for part := range content.Get("parts").Items() {
		if err := a.part(o, k, index, part); err != nil {
			return err
		}
	}
	if !reason.Empty() && reason.IsString() {
		k.finish(reason, message)
	}
	return nil
}

// finish keeps why the candidate ended. A reason that OpenAI has no word for is a stop, if there
// is something that was stopped.
func (k *candidate) finish(reason, message json.Value) {
	k.odd, k.message = nil, nil
	switch word := reason.Text(); string(word) {
	case "FINISH_REASON_UNSPECIFIED":
	case "STOP":
		k.reason = chat.Stop
	case "MAX_TOKENS":
		k.reason = chat.Length
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		k.reason = chat.ContentFilter
	default:
		const most = 200
		k.reason = chat.Stop
		k.odd = word[:min(len(word), most)]
		if k.message = message.Text(); len(k.message) > most {
			k.message = k.message[:most]
		}
	}
}

func (a *answer) part(o *chat.Out, k *candidate, index int, part json.Value) error {
	var text, signature, call json.Value
	thought, foreign := false, false
	for key, v := range part.Members() {
		switch string(key) {
		case "text":
			text = v
		case "thought":
			thought = v.True()
		case "thoughtSignature":
			if v.IsString() && !v.Empty() {
				signature = v
			}
		case "functionCall":
			if v.IsObject() {
				call = v
			}
		case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
			foreign = true
		}
	}
	switch {
	case call != nil:
		return a.function(o, k, index, call, signature)
	case foreign:
		o.Opaque(index, partItem(part, k.text, calls(o, index)))
	case thought:
		size := uint64(text.DecodedLen())
		o.Reasoning(index, text)
		if signature == nil {
			k.unsigned += size
			break
		}
		if k.unsigned > 0 {
			o.Opaque(index, reasoningItem(typeUnsigned, nil, k.unsigned))
			k.unsigned = 0
		}
		o.Opaque(index, reasoningItem(typeThought, signature, size))
	default:
		size := uint64(text.DecodedLen())
		if signature != nil {
			o.Opaque(index, textItem(signature, k.text, size, calls(o, index)))
		}
		if size > 0 {
			o.Text(index, text)
			k.text += size
			k.said = true
		}
	}
	return nil
}

// end finishes every candidate and gives the usage. whole is false, and nothing is said, while
// one of them has not ended.
func (a *answer) end(o *chat.Out) (whole bool, err error) {
	for i := range a.count {
		if a.record(i).reason == 0 && !(a.blocked && i == 0) {
			return false, nil
		}
	}
	if a.count == 0 && !a.blocked {
		return false, nil
	}
	if a.blocked {
		k := a.record(0)
		k.reason, k.odd = chat.ContentFilter, nil
	}
	for i := range a.count {
		k := a.record(i)
		if k.odd != nil && !k.said {
			return false, &interlock.Failure{Class: interlock.MalformedAnswer, Type: string(k.odd), Message: string(k.message)}
		}
		if err := k.closeCall(o, i); err != nil {
			return false, err
		}
		o.Finish(i, k.reason)
	}
	if a.counted {
		o.Usage(a.usage)
	}
	return true, nil
}
