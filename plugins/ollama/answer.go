package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	if c.Endpoint == "embeddings" {
		return embedded(c, root, dst)
	}
	o := chat.NewWhole(c)
	done, err := take(&o, root)
	if err != nil {
		return nil, err
	}
	if !done {
		return nil, interlock.Malformed("the answer is not done")
	}
	return o.AppendBody(dst), nil
}

func events(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
	o := chat.NewChunks(c, out)
	if len(c.State) > 0 {
		if r := o.LoadState(c.State); !r.OK() {
			return interlock.Internal("the state is not this plugin's")
		}
	}
	var failed error
	for i := range in {
		if out.Done {
			break
		}
		v, err := json.Parse(in[i].Data)
		if err != nil || !v.IsObject() {
			failed = interlock.Malformed("a line is not a JSON object")
			break
		}
		if out.Done, failed = take(&o, v); failed != nil {
			break
		}
	}
	out.State = o.AppendState(out.State[:0])
	return failed
}

// take adds what a line of a stream, or a whole answer, says:
//
//	{"message": {"content", "thinking", "tool_calls": [{"id", "function": {"name", "arguments": {…}}}]},
//	 "done", "done_reason", "prompt_eval_count", "eval_count"}
//	{"error": "text"}
func take(o *chat.Out, v json.Value) (done bool, err error) {
	var message, reason json.Value
	var u chat.Usage
	counted := false
	for key, v := range v.Members() {
		switch string(key) {
		case "message":
			message = v
		case "done":
			done = v.True()
		case "done_reason":
			reason = v
		case "prompt_eval_count":
			counted = count(&u.Prompt, v) || counted
		case "prompt_eval_cached_count":
			count(&u.Cached, v)
		case "eval_count":
			counted = count(&u.Completion, v) || counted
		case "error":
			if !v.IsNull() {
				f := inside(v)
				return false, &f
			}
		}
	}
	if message == nil && !done {
		return false, interlock.Malformed("a line has neither a message nor an error")
	}
	for key, v := range message.Members() {
		switch string(key) {
		case "thinking":
			o.Reasoning(0, v)
		case "content":
			o.Text(0, v)
		}
	}
	for call := range message.Get("tool_calls").Items() {
		f := call.Get("function")
		if !f.IsObject() || f.Get("name").Empty() {
			return false, interlock.Malformed("a call of a tool has no name")
		}
		o.ToolCall(0, call.Get("id"), f.Get("name"))
		if args := f.Get("arguments"); args.IsObject() {
			o.ArgumentsJSON(0, args)
		}
		o.EndCall(0)
	}
	if !done {
		return false, nil
	}
	if reason.Is("length") {
		o.Finish(0, chat.Length)
	} else {
		o.Finish(0, chat.Stop) // stop, load, unload; with a call it becomes tool_calls
	}
	if counted {
		o.Usage(u)
	}
	return true, nil
}

func count(to *uint64, v json.Value) bool {
	n, ok := v.Uint()
	if ok {
		*to = n
	}
	return ok
}
