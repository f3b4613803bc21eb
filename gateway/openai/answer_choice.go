package openai

import (
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// readChoices reads the choices of a chat or completion; true when one holds an error.
func (a *Answer) readChoices() (isError bool) {
	r := &a.json
	if r.Peek() != jsonx.Array {
		r.Skip()
		return false
	}
	a.hasList = true
	r.Enter()
	for n := int64(0); r.Item(); n++ {
		if r.Peek() != jsonx.Object {
			r.Skip()
			continue
		}
		a.results++
		isError = a.readChoice(n) || isError
	}
	return isError
}

// readChoice reads {"index", "message" or "text", "finish_reason"}. The index is looked up first:
// it decides what the rest belongs to.
func (a *Answer) readChoice(position int64) (isError bool) {
	r := &a.json
	index := a.indexOf(r.Pos(), position)
	c := a.record.choice(index)
	if c == nil {
		index = position % maxIndex
		c = a.record.choice(index)
	}
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return isError
		}
		switch string(key) {
		case "message":
			a.readMessage(c, int(index))
		case "text":
			if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
				a.say(c, raw)
			}
		case "finish_reason":
			a.readFinish(c)
		case "error":
			if u, found := readErrorValue(r, 0); found {
				isError, a.failure = true, u
			}
		default:
			r.Skip()
		}
	}
}

// indexOf looks a choice's index up.
func (a *Answer) indexOf(at int, position int64) int64 {
	var r jsonx.Reader
	r.ResetAt(a.json.Document(), at)
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return position
		}
		if string(key) == "index" {
			if n, ok := r.IntOrSkip(); ok {
				return n
			}
			return position
		}
		r.Skip()
	}
}

func (a *Answer) say(c *choice, raw []byte) {
	a.products |= Content
	c.text = jsonx.AppendDecoded(c.text, raw)
}

func (a *Answer) readFinish(c *choice) {
	r := &a.json
	from := r.Pos()
	raw, _, ok := r.StrOrSkip()
	if !ok || len(raw) == 0 {
		return
	}
	word, same, known := finishWord(raw)
	if !known {
		a.ended = raw
		return
	}
	c.finish = word
	if !same {
		a.patch.ReplaceString(from, r.Pos(), word)
	}
}

// readMessage reads a chat's message.
func (a *Answer) readMessage(c *choice, index int) {
	r := &a.json
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	open := r.Pos()
	list, reasons := false, false
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "content":
			if r.Peek() == jsonx.Array {
				a.list.read(r)
				list = true
			} else if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
				a.say(c, raw)
			}
		case "reasoning_content", "reasoning":
			reasons = reasons || string(key) == "reasoning_content"
			a.produceText(Reasoning)
		case "refusal":
			a.produceText(Refused)
		case "reasoning_details":
			a.produceAny(Reasoning)
		case "audio", "images":
			a.produceAny(Media)
		case "tool_calls":
			a.readCalls(index)
		case "function_call":
			a.readFunctionCall(index)
		default:
			r.Skip()
		}
	}
	if !list {
		return
	}
	if len(a.list.text) > 0 {
		a.say(c, a.list.text)
	}
	if len(a.list.thinking) > 0 {
		a.products |= Reasoning
	}
	a.list.flatten(&a.patch, r.Document(), open, reasons)
}

func (a *Answer) produceText(p Product) {
	if raw, _, ok := a.json.StrOrSkip(); ok && len(raw) > 0 {
		a.products |= p
	}
}

func (a *Answer) produceAny(p Product) {
	k := a.json.Peek()
	from, to := a.json.Skip()
	if (k == jsonx.Object || k == jsonx.Array) && to-from > len("{}") {
		a.products |= p
	}
}

// readCalls reads a message's tool calls; each element is a call of its own.
func (a *Answer) readCalls(choice int) {
	r := &a.json
	if r.Peek() != jsonx.Array {
		r.Skip()
		return
	}
	r.Enter()
	for r.Item() {
		p := readPiece(r)
		if !p.any || len(a.calls) >= maxCalls {
			continue
		}
		a.products |= ToolCalled
		index := a.calls.next(choice)
		k := a.calls.add(choice)
		k.index, k.slot, k.custom = index, p.index, p.custom
		setOnce(&k.id, p.id, false)
		setOnce(&k.name, p.name, false)
		k.argue(p.arguments)
		a.mend(&p)
	}
}

// mend gives a call the type that it lacks.
func (a *Answer) mend(p *piece) {
	if len(p.kind) > 0 {
		return
	}
	kind := `"function"`
	if p.custom {
		kind = `"custom"`
	}
	if p.kindAt.Present() {
		a.patch.Replace(p.kindAt.From, p.kindAt.To, kind)
		return
	}
	a.patch.InsertMember(a.json.Document(), p.open, "type", []byte(kind))
}

func (a *Answer) readFunctionCall(choice int) {
	r := &a.json
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	var p piece
	p.body(r)
	if !p.any {
		return
	}
	a.products |= ToolCalled
	index := a.calls.next(choice)
	k := a.calls.add(choice)
	k.index = index
	setOnce(&k.name, p.name, false)
	k.argue(p.arguments)
}
