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
			return malformed("an event is not JSON")
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
	bitOdd
)

func bit(is bool, b uint32) uint32 {
	if is {
		return b
	}
	return 0
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(dst)
	writeU32(&w, bit(a.blocked, bitBlocked)|bit(a.counted, bitCounted))
	for _, n := range [...]uint64{a.usage.Prompt, a.usage.Completion, a.usage.Cached, a.usage.Reasoning} {
		writeU64(&w, n)
	}
	writeU32(&w, uint32(a.count))
	for i := range a.count {
		k := a.record(i)
		writeU32(&w, bit(k.said, bitSaid)|bit(k.open, bitOpen)|bit(k.own, bitOwn)|bit(k.args.inString, bitInString)|
			bit(k.odd != nil, bitOdd)|uint32(k.reason)<<8)
		for _, n := range [...]uint64{k.text, k.unsigned} {
			writeU64(&w, n)
		}
		for _, b := range [...][]byte{k.odd, k.message, k.id} {
			writeBytes(&w, b)
		}
		writeU32(&w, uint32(len(k.args.levels)))
		for j := range k.args.levels {
			l := &k.args.levels[j]
			for _, n := range [...]uint32{bit(l.array, 1), l.next, uint32(len(l.last))} {
				writeU32(&w, n)
			}
			writeBytes(&w, l.keys)
		}
	}
	return w
}

// load reads what appendState wrote; what it keeps aliases the state handed in.
func (a *answer) load(r *interlock.Reader) bool {
	flags := readU32(r)
	a.blocked, a.counted = flags&bitBlocked != 0, flags&bitCounted != 0
	for _, n := range [...]*uint64{&a.usage.Prompt, &a.usage.Completion, &a.usage.Cached, &a.usage.Reasoning} {
		*n = readU64(r)
	}
	const least = 4 + 8 + 8 + 4*4
	for i := range min(r.Count(least), maxCandidates) {
		k := a.record(i)
		flags := readU32(r)
		k.said, k.open, k.own = flags&bitSaid != 0, flags&bitOpen != 0, flags&bitOwn != 0
		k.args.inString = flags&bitInString != 0
		if k.reason = chat.Reason(flags >> 8); k.reason.String() == "" {
			k.reason = 0
		}
		for _, n := range [...]*uint64{&k.text, &k.unsigned} {
			*n = readU64(r)
		}
		for _, b := range [...]*[]byte{&k.odd, &k.message, &k.id} {
			*b = readBytes(r)
		}
		if flags&bitOdd == 0 {
			k.odd = nil
		}
		for range min(r.Count(4*4), maxLevels) {
			l := nest{array: readU32(r) != 0, next: readU32(r)}
			n := int(readU32(r))
			l.keys = readBytes(r)
			if n > 0 && n < len(l.keys) {
				l.last = l.keys[len(l.keys)-1-n : len(l.keys)-1]
			}
			k.args.levels = append(k.args.levels, l)
		}
	}
	return r.OK()
}
