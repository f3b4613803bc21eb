package conformance

import (
	"fmt"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Step is one call that a fixture comes to, with its input.
type Step struct {
	Op     uint32
	Name   string // of the operation
	In     []byte
	Frames int // in it, of events
}

// Steps plays the fixture on a plugin that is open with Config and returns the calls it came to.
// The frames of its stream go batch at a time. They are pure functions: each may be made again,
// alone, any number of times.
func (x *Fixture) Steps(to Caller, batch int) ([]Step, error) {
	var list []Step
	call := func(op uint32, name string, in []byte, frames int) (out []byte, failed bool, err error) {
		list = append(list, Step{op, name, in, frames})
		out, failed, err = to.Call(op, in, nil)
		if err != nil {
			err = fmt.Errorf("%s: %s: %w", x.Name, name, err)
		}
		return out, failed, err
	}
	if x.wantVerdict != nil {
		return x.guardSteps(call, &list, batch)
	}
	state := ""
	if x.request != nil {
		out, failed, err := call(interlock.OpRequest, "request", x.context.request(x.request), 0)
		if err != nil {
			return nil, err
		}
		if !failed {
			q, err := decodeRequest(out)
			if err != nil {
				return nil, err
			}
			state = q.state
		}
	}
	if x.answer != nil {
		op, name := interlock.OpResponse, "response"
		if x.answer.status/100 != 2 {
			op, name = interlock.OpClassify, "classify"
		}
		if _, _, err := call(op, name, x.context.answer(state, x.answer), 0); err != nil {
			return nil, err
		}
	}
	for from := 0; from < len(x.stream); from += batch {
		part := x.stream[from:min(from+batch, len(x.stream))]
		out, failed, err := call(interlock.OpEvents, "events", x.context.events(state, part, false), len(part))
		if err != nil {
			return nil, err
		}
		if failed {
			break
		}
		r, err := decodeEvents(out)
		if err != nil {
			return nil, err
		}
		if state = r.state; r.done || r.failure != nil {
			break
		}
	}
	return list, nil
}

// Config is the configuration that the fixture wants, JSON.
func (x *Fixture) Config() []byte { return x.config }

func (x *Fixture) guardSteps(
	call func(op uint32, name string, in []byte, frames int) ([]byte, bool, error), list *[]Step, batch int,
) ([]Step, error) {
	for _, look := range []struct {
		name string
		op   uint32
		body []byte
	}{
		{"guard_request", interlock.OpGuardRequest, x.request},
		{"guard_response", interlock.OpGuardResponse, x.answerBody()},
	} {
		if look.body == nil {
			continue
		}
		in := x.context.guard(&x.subject)
		in.Bytes(look.body)
		if _, _, err := call(look.op, look.name, in, 0); err != nil {
			return nil, err
		}
	}
	state := ""
	for from := 0; from < len(x.stream); from += batch {
		part := x.stream[from:min(from+batch, len(x.stream))]
		in := x.context.guard(&x.subject)
		in.Str(state)
		appendFrames(&in, part, false)
		out, failed, err := call(interlock.OpGuardEvents, "guard_events", in, len(part))
		if err != nil {
			return nil, err
		}
		if failed {
			break
		}
		v, err := decodeVerdict(out, true)
		if err != nil {
			return nil, err
		}
		if state = v.state; v.action == uint32(interlock.Refuse) {
			break
		}
	}
	return *list, nil
}
