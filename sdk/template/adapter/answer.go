package main

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// response turns a whole answer with status 2xx into OpenAI's format, appended to dst.
func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	if e := root.Get("error"); e.IsObject() { // an error may hide behind a good status
		return nil, failure(e)
	}
	o := chat.NewWhole(c)
	begin(&o, root)
	o.Text(0, root.Get("text")) // 0: the choice; what is absent or null adds nothing
	for call := range root.Get("calls").Items() {
		o.ToolCall(0, call.Get("id"), call.Get("name"))
		o.ArgumentsJSON(0, call.Get("input"))
	}
	if err := end(&o, root); err != nil {
		return nil, err
	}
	return o.AppendBody(dst), nil
}

// events turns what one read of the socket brought into chunks. The same calls to chat.Out make
// both kinds of answer, so both say the same.
func events(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
	o := chat.NewChunks(c, out)
	o.LoadState(c.State) // first of all: where the answer stands. Your own state would follow it.
	err := each(&o, in, out)
	out.State = o.AppendState(out.State[:0])
	return err
}

func each(o *chat.Out, in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		if out.Done {
			return nil
		}
		v, err := json.Parse(in[i].Data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		switch in[i].Name {
		case "start":
			begin(o, v)
		case "text":
			o.Text(0, v.Get("text"))
		case "call":
			o.ToolCall(0, v.Get("id"), v.Get("name"))
		case "input":
			o.Arguments(0, v.Get("json")) // a part of the arguments' JSON, as a string
		case "end":
			if err := end(o, v); err != nil {
				return err
			}
			out.Done = true // the answer is whole; a stream that ends without is a broken one
		case "error":
			return failure(v)
		}
		// An event that is not known is none of an answer's: providers add new ones at any time.
	}
	return nil
}

func begin(o *chat.Out, v json.Value) {
	created, _ := v.Get("created").Uint() // seconds since 1970; 0: the gateway's clock
	o.Begin(v.Get("id"), created)
}

// end reads why the answer ended and what it used.
func end(o *chat.Out, v json.Value) error {
	switch ended := v.Get("ended"); {
	case ended.Is("natural"), ended.Is("stop_text"):
		o.Finish(0, chat.Stop) // with tool calls it becomes tool_calls by itself
	case ended.Is("calls"):
		o.Finish(0, chat.ToolCalls)
	case ended.Is("length"):
		o.Finish(0, chat.Length)
	case ended.Is("filter"):
		o.Finish(0, chat.ContentFilter)
	default: // OpenAI's callers know no other reasons
		return interlock.Malformed("the answer has no known end")
	}
	// OpenAI counts cached tokens as a part of the prompt, and reasoning as a part of the
	// completion. Add up where your provider counts them apart.
	used := v.Get("usage")
	var u chat.Usage
	u.Prompt, _ = used.Get("input").Uint()
	u.Cached, _ = used.Get("cached").Uint()
	u.Completion, _ = used.Get("output").Uint()
	u.Cached = min(u.Cached, u.Prompt)
	o.Usage(u)
	return nil
}
