package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

var errState = interlock.Internal("the state is not one of cohere's")

func events(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
	a := answer{out: chat.NewChunks(c, out)}
	if !a.load(c.State) {
		return errState
	}
	err := a.frames(in, out)
	out.State = a.appendState(out.State[:0])
	return err
}

func (a *answer) frames(in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		data := in[i].Data
		if out.Done {
			return nil
		}
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		v, err := json.Parse(data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		if out.Done, err = a.event(v); err != nil {
			return err
		}
	}
	return nil
}

// event takes an event. done: it ended the answer.
func (a *answer) event(v json.Value) (done bool, err error) {
	var kind, id, delta, message json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "type":
			kind = v
		case "id":
			id = v
		case "delta":
			delta = v
		case "message":
			message = v
		}
	}
	switch string(kind.Text()) {
	case "message-start":
		a.begin(id)
	case "content-start", "content-delta":
		a.part(delta.At("message", "content"))
	case "tool-plan-delta":
		a.planned(delta.At("message", "tool_plan"))
	case "tool-call-start":
		a.call(delta.At("message", "tool_calls"))
	case "tool-call-delta":
		a.arguments(delta.At("message", "tool_calls", "function", "arguments"))
	case "tool-call-end":
		a.out.EndCall(0)
	case "message-end":
		return true, a.messageEnd(delta)
	default: // citations, ends of blocks, and what is not known
		if message.IsString() {
			f := read(v, 0)
			return false, &f
		}
	}
	return false, nil
}

func (a *answer) messageEnd(delta json.Value) error {
	var reason, usage, message json.Value
	for key, v := range delta.Members() {
		switch string(key) {
		case "finish_reason":
			reason = v
		case "usage":
			usage = v
		case "error":
			message = v
		}
	}
	if err := a.end(reason, message); err != nil {
		return err
	}
	if u, ok := readUsage(usage); ok {
		a.out.Usage(u)
	}
	return nil
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(a.out.AppendState(dst))
	w.U64(a.thinking)
	w.Bytes(a.plan)
	return w
}

// load takes over a state, which must hold as long as the answer. ok is false for a strange one.
func (a *answer) load(state []byte) (ok bool) {
	if len(state) == 0 {
		return true
	}
	r := a.out.LoadState(state)
	a.thinking = r.U64()
	a.plan = r.Bytes()
	return r.OK()
}
