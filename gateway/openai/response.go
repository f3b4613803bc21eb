package openai

import (
	"strings"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// responseFacts is what a response object says about itself.
type responseFacts struct {
	open             int  // offset of its opening brace
	modelAt          Span // the model's value; absent when there is no such member
	hasModel         bool
	status, reason   string // reason of an incomplete one
	hasOutput, isErr bool
	failure          UpstreamError
}

// readResponse reads a response object into the record. final says that its output replaces what
// earlier events said.
func (a *record) readResponse(r *jsonx.Reader, final bool) (f responseFacts) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return f
	}
	f.open = r.Pos()
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return f
		}
		from := r.Pos()
		switch string(key) {
		case "id":
			if raw, escaped, ok := r.StrOrSkip(); ok {
				a.setID(raw, escaped)
			}
		case "model":
			raw, escaped, ok := r.StrOrSkip()
			if f.hasModel = ok && len(raw) > 0; f.hasModel {
				a.setModel(raw, escaped)
			}
			f.modelAt = Span{from, r.Pos()}
		case "service_tier":
			if raw, escaped, ok := r.StrOrSkip(); ok && string(raw) != "auto" {
				a.tier = ""
				setOnce(&a.tier, raw, escaped)
			}
		case "status":
			f.status = string(decodedText(r))
		case "incomplete_details":
			f.reason = readReason(r)
		case "error":
			f.failure, f.isErr = readErrorValue(r, 0)
		case "output":
			f.hasOutput = a.readOutput(r, final)
		case "usage":
			if u := readUsage(r); u.any {
				a.usage, a.hasUsage = u.Usage, true
			}
		default:
			r.Skip()
		}
	}
}

func readReason(r *jsonx.Reader) (reason string) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return ""
	}
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return reason
		}
		if string(key) == "reason" {
			reason = string(decodedText(r))
		} else {
			r.Skip()
		}
	}
}

// finishResponse gives choice 0 the finish reason that a finished response has in chat's words.
func (a *record) finishResponse(f *responseFacts) {
	c := a.choice(0)
	switch {
	case f.status == "incomplete" && f.reason == finishContentFilter:
		c.finish = finishContentFilter
	case f.status == "incomplete":
		c.finish = finishLength
	default:
		c.finish = finishStop
		for i := range a.calls {
			if !a.calls[i].custom {
				c.finish = finishToolCalls
			}
		}
	}
}

// readOutput reads the items of an output; false when it is no list.
func (a *record) readOutput(r *jsonx.Reader, final bool) bool {
	if r.Peek() != jsonx.Array {
		r.Skip()
		return false
	}
	r.Enter()
	for n := 0; r.Item(); n++ {
		if n == 0 && final {
			a.calls = a.calls[:0]
			c := a.choice(0)
			c.text = c.text[:0]
		}
		a.readItem(r, final, final)
	}
	return true
}

// outputItem is what an output item says.
type outputItem struct {
	kind      []byte
	id, name  []byte
	arguments []byte
	input     bool // arguments are a custom tool's input
	product   Product
}

// readItem reads one output item into the record: its call and its text where these are wanted.
func (a *record) readItem(r *jsonx.Reader, call, text bool) (product Product) {
	var it outputItem
	if r.Peek() != jsonx.Object {
		r.Skip()
		return 0
	}
	c := a.choice(0)
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "type":
			it.kind = decodedText(r)
		case "content", "summary":
			a.readItemContent(r, c, &it, text && string(key) == "content")
		case "encrypted_content":
			if raw, _, ok := r.StrOrSkip(); ok && len(raw) > 0 {
				it.product |= Reasoning
			}
		case "call_id":
			it.id = decodedText(r)
		case "name":
			it.name = decodedText(r)
		case "arguments", "input":
			it.input = string(key) == "input"
			it.arguments, _, _ = r.StrOrSkip()
		default:
			r.Skip()
		}
	}
	product = it.products()
	a.products |= product
	if call && product&ToolCalled != 0 && len(a.calls) < maxCalls {
		index := a.calls.next(0)
		k := a.calls.add(0)
		k.index, k.custom = index, it.input
		setOnce(&k.id, it.id, false)
		setOnce(&k.name, it.name, false)
		k.argue(it.arguments)
	}
	return product
}

// products is what an item of its type produces. An item of a type that nobody here knows counts
// as one of a hosted tool: better not replayed than lost.
func (it *outputItem) products() Product {
	switch kind := string(it.kind); {
	case kind == "message":
		return it.product
	case kind == "reasoning":
		if it.product != 0 {
			return Reasoning
		}
		return 0
	case kind == "function_call" || kind == "custom_tool_call":
		return ToolCalled
	case strings.HasPrefix(kind, "image_generation"):
		return Media | HostedTool
	case kind == "":
		return 0
	}
	return HostedTool
}

// readItemContent reads the parts of a message or of a reasoning item.
func (a *record) readItemContent(r *jsonx.Reader, c *choice, it *outputItem, keep bool) {
	if r.Peek() != jsonx.Array {
		r.Skip()
		return
	}
	r.Enter()
	for r.Item() {
		if r.Peek() != jsonx.Object {
			r.Skip()
			continue
		}
		var kind, text []byte
		r.Enter()
		for {
			key, _, ok := r.Key()
			if !ok {
				break
			}
			switch string(key) {
			case "type":
				kind = decodedText(r)
			case "text", "refusal":
				if raw, _, ok := r.StrOrSkip(); ok {
					text = raw
				}
			default:
				r.Skip()
			}
		}
		if len(text) == 0 {
			continue
		}
		switch string(kind) {
		case "refusal":
			it.product |= Refused
		case "output_text", "text":
			it.product |= Content
			if keep {
				c.text = jsonx.AppendDecoded(c.text, text)
			}
		default:
			it.product |= Reasoning
		}
	}
}
