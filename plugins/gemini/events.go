package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// events maps the chunks of a stream. There is no mark at its end: it is whole when the body ends
// and every candidate has a reason to have ended.
func events(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
	o := chat.NewChunks(c, out)
	rest := o.LoadState(c.State)
	a := answer{call: c}
	if len(c.State) > 0 && !a.load(&rest) {
		return interlock.Internal("the state is not one of gemini's")
	}
	err := a.frames(&o, in)
	if err == nil && ended {
		out.Done, err = a.end(&o)
	}
	out.State = a.appendState(o.AppendState(out.State[:0]))
	return err
}

func (a *answer) frames(o *chat.Out, in []interlock.Frame) error {
	for i := range in {
		data := in[i].Data
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		v, err := json.Parse(data)
		if err != nil {
			return interlock.Malformed("an event is not JSON")
		}
		if err := a.value(o, v); err != nil {
			return err
		}
	}
	return nil
}

const (
	bitBlocked = 1 << iota
	bitCounted
)

const (
	bitSaid = 1 << iota
	bitOpen
	bitOwn
	bitInString
)

func bit(is bool, b uint32) uint32 {
	if is {
		return b
	}
	return 0
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(dst)
	w.U32(bit(a.blocked, bitBlocked) | bit(a.counted, bitCounted))
	w.U64(a.usage.Prompt)
	w.U64(a.usage.Completion)
	w.U64(a.usage.Cached)
	w.U64(a.usage.Reasoning)
	w.U32(uint32(a.count))
	for i := range a.count {
		k := a.record(i)
		w.U32(bit(k.said, bitSaid) | bit(k.open, bitOpen) | bit(k.own, bitOwn) | bit(k.args.inString, bitInString) | uint32(k.reason)<<8)
		w.U64(k.text)
		w.U64(k.unsigned)
		w.Bool(k.odd != nil)
		w.Bytes(k.odd)
		w.Bytes(k.message)
		w.Bytes(k.id)
		w.U32(uint32(len(k.args.levels)))
		for j := range k.args.levels {
			l := &k.args.levels[j]
			w.Bool(l.array)
			w.U32(l.next)
			w.Bytes(l.keys)
			w.U32(uint32(len(l.last)))
		}
	}
	return w
}

// load reads what appendState wrote; what it keeps aliases the state handed in.
func (a *answer) load(r *interlock.Reader) bool {
	flags := r.U32()
	a.blocked, a.counted = flags&bitBlocked != 0, flags&bitCounted != 0
	a.usage.Prompt = r.U64()
	a.usage.Completion = r.U64()
	a.usage.Cached = r.U64()
	a.usage.Reasoning = r.U64()
	const least = 4 + 8 + 8 + 5*4
	for i := range min(r.Count(least), maxCandidates) {
		k := a.record(i)
		flags := r.U32()
		k.said, k.open, k.own = flags&bitSaid != 0, flags&bitOpen != 0, flags&bitOwn != 0
		if k.reason = chat.Reason(flags >> 8); k.reason.String() == "" {
			k.reason = 0
		}
		k.text = r.U64()
		k.unsigned = r.U64()
		odd := r.Bool()
		if k.odd = r.Bytes(); !odd {
			k.odd = nil
		} else if k.odd == nil {
			k.odd = []byte{}
		}
		k.message = r.Bytes()
		k.id = r.Bytes()
		k.args.inString = flags&bitInString != 0
		for range min(r.Count(4*4), maxLevels) {
			l := nest{array: r.Bool(), next: r.U32(), keys: r.Bytes()}
			if n := int(r.U32()); n > 0 && n < len(l.keys) {
				l.last = l.keys[len(l.keys)-1-n : len(l.keys)-1]
			}
			k.args.levels = append(k.args.levels, l)
		}
	}
	return r.OK()
}
