package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

var errState = interlock.Internal("the state is not one of bedrock's")

// newState is what Request leaves: by which tool the model gives its answer.
func newState(dst []byte, tool string) []byte {
	a := answer{tool: []byte(tool)}
	return a.appendState(dst)
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(a.out.AppendState(dst))
	w.Bytes(a.tool)
	w.U32(uint32(a.kind))
	w.U64(a.index)
	w.Bool(a.filled)
	w.U64(a.bytes)
	w.U64(a.unsigned)
	w.Bytes(a.signature)
	w.Bytes(a.held)
	w.Bool(a.counted)
	w.U64(a.usage.Prompt)
	w.U64(a.usage.Completion)
	w.U64(a.usage.Cached)
	w.U64(a.usage.CacheWrite)
	return w
}

// load takes over a state, which must hold as long as the answer. ok is false for a strange one.
func (a *answer) load(state []byte) (ok bool) {
	if len(state) == 0 {
		return true
	}
	r := a.out.LoadState(state)
	a.tool = r.Bytes()
	a.kind = kind(r.U32())
	a.index = r.U64()
	a.filled = r.Bool()
	a.bytes = r.U64()
	a.unsigned = r.U64()
	a.signature = r.Bytes()
	a.held = r.Bytes()
	a.counted = r.Bool()
	a.usage = chat.Usage{Prompt: r.U64(), Completion: r.U64(), Cached: r.U64(), CacheWrite: r.U64()}
	return r.OK()
}

func events(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
	a := answer{out: chat.NewChunks(c, out), call: c}
	if !a.load(c.State) {
		return errState
	}
	err := a.frames(in, out)
	if err == nil && ended && !out.Done && a.out.Finished(0) != 0 {
		out.Done = true // without its usage, it is whole all the same
	}
	out.State = a.appendState(out.State[:0])
	return err
}

func (a *answer) frames(in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		if out.Done {
			return nil
		}
		if f := exception(&in[i]); f != nil {
			return f
		}
		v, err := json.Parse(in[i].Data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		if err := a.event(in[i].Name, v, out); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) event(name string, v json.Value, out *interlock.Events) error {
	switch name {
	case "contentBlockStart":
		a.blockStart(v)
	case "contentBlockDelta":
		return a.delta(v)
	case "contentBlockStop":
		a.close()
	case "messageStop":
		if err := a.stop(v.Get("stopReason")); err != nil {
			return err
		}
		if a.counted {
			a.out.Usage(a.usage)
			out.Done = true
		}
	case "metadata":
		u, ok := readUsage(v.Get("usage"))
		switch {
		case a.out.Finished(0) == 0:
			a.usage, a.counted = u, ok
		case ok:
			a.out.Usage(u)
			out.Done = true
		}
	}
	return nil
}

func (a *answer) blockStart(v json.Value) {
	a.close()
	a.index, _ = v.Get("contentBlockIndex").Uint()
	for key, v := range v.Get("start").Members() {
		if string(key) == "toolUse" {
			a.start(v)
		} else {
			a.kind = hidden
		}
		return
	}
}

func (a *answer) delta(v json.Value) error {
	var delta json.Value
	var index uint64
	for key, v := range v.Members() {
		switch string(key) {
		case "contentBlockIndex":
			index, _ = v.Uint()
		case "delta":
			delta = v
		}
	}
	if index != a.index {
		a.close()
		a.index = index
	}
	if a.kind == hidden {
		return nil
	}
	for key, v := range delta.Members() {
		switch string(key) {
		case "text":
			a.kind = textual
			return a.text(v)
		case "reasoningContent":
			return a.reasoningDelta(v)
		case "toolUse":
			return a.toolDelta(v.Get("input"))
		}
	}
	return nil
}

func (a *answer) reasoningDelta(v json.Value) error {
	for key, v := range v.Members() {
		switch string(key) {
		case "text":
			a.reasoning(v)
		case "signature":
			return a.sign(v)
		case "redactedContent":
			a.redacted(v)
		}
	}
	return nil
}

// toolDelta gives a part of a tool's input: a string that holds a part of its JSON.
func (a *answer) toolDelta(v json.Value) error {
	switch {
	case v.Empty():
	case a.kind == calling:
		a.out.Arguments(0, v)
	case a.kind == replying:
		a.filled = true
		a.out.Text(0, v)
	default:
		return interlock.Malformed("a tool's input came without its start")
	}
	return nil
}
