package openai

import (
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// AnswerOptions say what a whole answer needs on its way down.
type AnswerOptions struct {
	Model      string // filled in where the provider sends no model; "" leaves it out
	Disclosure []byte // JSON value for "interlock"; nil = none
	Base64     bool   // the caller asked for base64 embeddings: lists of floats are rendered so
}

// Answer holds the facts of a whole, not streamed answer with a 2xx status. The zero value is
// ready for use, and one value may be used again for the next answer.
//
// On the way down it changes what Stream changes: the type of tool calls, content that is a list
// of parts, finish reasons of another vocabulary, completion tokens that leave reasoning out, a
// missing model, the disclosure of a substitution; and embeddings are rendered in base64 where the
// caller asked for it and the provider did not comply.
type Answer struct {
	record
	endpoint Endpoint
	patch    jsonx.Patch
	json     jsonx.Reader
	open     int  // offset of the opening brace
	modelAt  Span // the model's value, absent when there is no such member
	hasModel bool
	results  int    // choices, embeddings or moderations
	hasList  bool   // the list of them is there
	ended    []byte // a finish reason that is none
	vectors  []Span // embeddings that are lists of numbers
	list     parts
}

func (a *Answer) reset(e Endpoint) {
	a.record.reset()
	a.patch.Reset()
	a.endpoint, a.open, a.modelAt, a.hasModel = e, 0, Span{}, false
	a.results, a.hasList, a.ended, a.vectors = 0, false, nil, a.vectors[:0]
}

// Scan validates a body with a 2xx status and fills a. Broken is what is not JSON, or holds no
// list of choices, embeddings or results, or an empty one; Errored is an error inside a 200, or a
// finish reason that says so.
func (a *Answer) Scan(e Endpoint, body []byte) Ending {
	a.reset(e)
	if !jsonx.Valid(body) {
		return Broken
	}
	if a.json.Reset(body); a.json.Peek() != jsonx.Object {
		if u, ok := ReadError(body); ok {
			a.fail(u)
			return Errored
		}
		return Broken
	}
	a.open = a.json.Pos()
	if e == Responses {
		return a.scanResponse(body)
	}
	isError := a.readBody()
	switch {
	case isError:
		u, found := ReadError(body)
		if !found || u.Message == "" {
			u = a.failure
		}
		a.fail(u)
		return Errored
	case a.ended != nil:
		a.fail(unfinished(a.ended))
		return Errored
	case !a.hasList:
		if u, ok := ReadError(body); ok {
			a.fail(u)
			return Errored
		}
		return Broken
	case a.results == 0:
		return Broken
	case e == Embeddings || e == Moderations:
		return Whole
	}
	return a.record.ending()
}

func (a *Answer) scanResponse(body []byte) Ending {
	f := a.readResponse(&a.json, true)
	a.modelAt, a.hasModel = f.modelAt, f.hasModel
	switch {
	case f.isErr || f.status == "failed" || f.status == "cancelled":
		a.failAs(f.failure, f.status)
		return Errored
	case f.status == "queued" || f.status == "in_progress":
		return Whole // a background response: its output comes later
	case !f.hasOutput:
		if u, ok := ReadError(body); ok {
			a.fail(u)
			return Errored
		}
		return Broken
	}
	a.finishResponse(&f)
	return a.record.ending()
}

// readBody reads the top level; true when it holds an error.
func (a *Answer) readBody() (isError bool) {
	r := &a.json
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return isError
		}
		from := r.Pos()
		switch string(key) {
		case "choices":
			if a.endpoint == ChatCompletions || a.endpoint == Completions {
				isError = a.readChoices() || isError
			} else {
				r.Skip()
			}
		case "data", "results":
			a.readResults(string(key))
		case "id":
			if raw, escaped, ok := r.StrOrSkip(); ok {
				a.setID(raw, escaped)
			}
		case "model":
			raw, escaped, ok := r.StrOrSkip()
			if a.hasModel = ok && len(raw) > 0; a.hasModel {
				a.setModel(raw, escaped)
			}
			a.modelAt = Span{from, r.Pos()}
		case "service_tier":
			if raw, escaped, ok := r.StrOrSkip(); ok {
				setOnce(&a.tier, raw, escaped)
			}
		case "usage":
			a.readUsage()
		case "error":
			_, found := readErrorValue(r, 0)
			isError = isError || found
		default:
			r.Skip()
		}
	}
}

func (a *Answer) readUsage() {
	u := readUsage(&a.json)
	if !u.any {
		return
	}
	a.usage, a.hasUsage = u.Usage, true
	if u.moved {
		a.patch.ReplaceInt(u.outputAt.From, u.outputAt.To, u.Output)
	}
}

// readResults counts embeddings or moderations and finds the embeddings that are lists.
func (a *Answer) readResults(key string) {
	r := &a.json
	wanted := key == "data" && a.endpoint == Embeddings || key == "results" && a.endpoint == Moderations
	if !wanted || r.Peek() != jsonx.Array {
		r.Skip()
		return
	}
	a.hasList = true
	r.Enter()
	for r.Item() {
		a.results++
		if a.endpoint != Embeddings || r.Peek() != jsonx.Object {
			r.Skip()
			continue
		}
		r.Enter()
		for {
			key, _, ok := r.Key()
			if !ok {
				break
			}
			list := r.Peek() == jsonx.Array
			from, to := r.Skip()
			if string(key) == "embedding" && list {
				a.vectors = append(a.vectors, Span{from, to})
			}
		}
	}
}

// AppendBody appends the body for the caller: body with what would break a typed SDK or a count
// put right, and every other byte as it came. body must be what Scan was given.
func (a *Answer) AppendBody(dst, body []byte, o AnswerOptions) []byte {
	p := a.patch // Scan's edits stay as they are for another call
	p.Detach()
	if !a.hasModel && o.Model != "" && a.endpoint != NoEndpoint {
		name := jsonx.AppendString(nil, o.Model)
		if a.modelAt.Present() {
			p.ReplaceBytes(a.modelAt.From, a.modelAt.To, name)
		} else {
			p.InsertMember(body, a.open, "model", name)
		}
	}
	if len(o.Disclosure) > 0 {
		p.InsertMember(body, a.open, "interlock", o.Disclosure)
	}
	if o.Base64 {
		for _, v := range a.vectors {
			if text, ok := base64Vector(body, v); ok {
				p.ReplaceBytes(v.From, v.To, text)
			}
		}
	}
	if p.Empty() {
		return append(dst, body...)
	}
	return p.Append(dst, body)
}
