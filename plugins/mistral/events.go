package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

var errState = interlock.Internal("the state is not one of mistral's")

func events(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
	a := answer{out: chat.NewChunks(c, out)}
	if !a.load(c.State) {
		return errState
	}
	err := a.frames(in, out)
	if err == nil && ended && !out.Done {
		out.Done = a.end() // without its mark, it is whole all the same
	}
	out.State = a.appendState(out.State[:0])
	return err
}

func (a *answer) frames(in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		data := in[i].Data
		if out.Done {
			return nil
		}
		if len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			if out.Done = a.end(); !out.Done {
				return interlock.Malformed("the stream ended without a reason to finish")
			}
			continue
		}
		v, err := json.Parse(data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		if err := a.chunk(v, false); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(a.out.AppendState(dst))
	w.Bool(a.counted)
	for _, n := range [...]uint64{a.usage.Prompt, a.usage.Completion, a.usage.Cached, a.usage.Reasoning} {
		w.U64(n)
	}
	w.U32(uint32(a.count))
	for i := range a.count {
		k := a.record(i)
		w.U64(k.thinking)
		w.Bool(k.open)
		w.U64(k.index)
		w.Bytes(k.id)
	}
	return w
}

// load takes over a state, which must hold as long as the answer. ok is false for a strange one.
func (a *answer) load(state []byte) (ok bool) {
	if len(state) == 0 {
		return true
	}
	r := a.out.LoadState(state)
	a.counted = r.Bool()
	a.usage = chat.Usage{Prompt: r.U64(), Completion: r.U64(), Cached: r.U64(), Reasoning: r.U64()}
	for i := range min(r.Count(24), maxChoices) {
		k := a.record(i)
		k.thinking = r.U64()
		k.open = r.Bool()
		k.index = r.U64()
		k.id = r.Bytes()
	}
	return r.OK()
}
