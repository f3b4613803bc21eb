package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

var errState = interlock.Internal("the state is not one of anthropic's")

// newState is what Request leaves: by which tool the model gives its answer.
func newState(dst []byte, tool string) []byte {
	a := answer{tool: []byte(tool)}
	return a.appendState(dst)
}

func (a *answer) appendState(dst []byte) []byte {
	w := interlock.Writer(a.out.AppendState(dst))
	var flags uint64
	for i, on := range [...]bool{a.blocks, a.filled, a.counted} {
		if on {
			flags |= 1 << i
		}
	}
	for _, n := range [...]uint64{
		flags, uint64(a.kind), a.index, uint64(a.place.text), uint64(a.place.calls), a.bytes, a.unsigned,
		a.input[0], a.input[1], a.input[2], a.usage.Completion, a.usage.Reasoning, uint64(a.ended),
	} {
		w.U64(n)
	}
	for _, b := range [...][]byte{a.tool, a.signature, a.held} {
		w.Bytes(b)
	}
	return w
}

// load takes over a state, which must hold as long as the answer. ok is false for a strange one.
func (a *answer) load(state []byte) (ok bool) {
	if len(state) == 0 {
		return true
	}
	r := a.out.LoadState(state)
	var n [13]uint64
	for i := range n {
		n[i] = r.U64()
	}
	a.blocks, a.filled, a.counted = n[0]&1 != 0, n[0]&2 != 0, n[0]&4 != 0
	a.kind, a.index = kind(n[1]), n[2]
	a.place = position{int(min(n[3], 1<<30)), int(min(n[4], 1<<30))}
	a.bytes, a.unsigned = n[5], n[6]
	a.input = [3]uint64(n[7:10])
	a.usage = chat.Usage{Completion: n[10], Reasoning: n[11]}
	a.ended = uint32(n[12])
	a.count(nil)
	a.tool, a.signature, a.held = r.Bytes(), r.Bytes(), r.Bytes()
	return r.OK()
}

func events(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
	a := answer{out: chat.NewChunks(c, out)}
	if !a.load(c.State) {
		return errState
	}
	err := a.frames(in, out)
	if err == nil && ended && !out.Done && a.ended != 0 { // whole, without its last event
		a.finish()
		out.Done = true
	}
	out.State = a.appendState(out.State[:0])
	return err
}

func (a *answer) frames(in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		data := in[i].Data
		if len(data) == 0 || string(data) == "[DONE]" { // of others that speak this format
			continue
		}
		v, err := json.Parse(data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		if err := a.event(v, out); err != nil || out.Done {
			return err
		}
	}
	return nil
}

// event reads an event in one pass. Kinds that are not known are passed over.
func (a *answer) event(v json.Value, out *interlock.Events) error {
	var what, index, delta, block, message, usage, fault json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "type":
			what = v
		case "index":
			index = v
		case "delta":
			delta = v
		case "content_block":
			block = v
		case "message":
			message = v
		case "usage":
			usage = v
		case "error":
			fault = v
		}
	}
	switch word := what.Text(); string(word) {
	case "content_block_delta":
		return a.delta(index, delta)
	case "content_block_start":
		a.close()
		a.index, _ = index.Uint()
		return a.start(block)
	case "content_block_stop":
		a.close()
	case "message_start":
		return a.begin(message)
	case "message_delta":
		a.count(usage)
		a.stop(delta.Get("stop_reason"), delta.Get("stop_details"))
	case "message_stop":
		if a.ended == 0 {
			return interlock.Malformed("the answer does not say why it ended")
		}
		a.finish()
		out.Done = true
	case "error":
		f := readError(fault)
		return &f
	}
	return nil
}

// begin takes over a message's head. Some relays begin anew when their upstream broke: what has
// been said by then cannot be unsaid, and no answer is made of two.
func (a *answer) begin(message json.Value) error {
	if a.blocks {
		return interlock.Malformed("another message began amid the answer")
	}
	var id, usage json.Value
	for key, v := range message.Members() {
		switch string(key) {
		case "id":
			id = v
		case "usage":
			usage = v
		}
	}
	a.out.Begin(id, 0)
	a.count(usage)
	return nil
}

func (a *answer) delta(index, delta json.Value) error {
	var what, text json.Value
	for key, v := range delta.Members() {
		switch string(key) {
		case "type":
			what = v
		case "text", "thinking", "signature", "partial_json":
			text = v
		}
	}
	if n, ok := index.Uint(); ok && n != a.index || a.kind == nothing {
		return interlock.Malformed("a part of a block came without its start")
	}
	switch word := what.Text(); string(word) {
	case "text_delta":
		if a.kind == textual {
			return a.text(text)
		}
	case "thinking_delta":
		if a.kind == thinking {
			a.reasoning(text)
		}
	case "signature_delta":
		if a.kind == thinking {
			return a.sign(text)
		}
	case "input_json_delta":
		a.arguments(text)
	}
	return nil
}

// arguments gives a part of a tool's input: a string that holds a part of its JSON.
func (a *answer) arguments(v json.Value) {
	switch {
	case v.Empty():
	case a.kind == calling:
		a.out.Arguments(0, v)
	case a.kind == replying:
		a.filled = true
		a.out.Text(0, v)
	}
}
