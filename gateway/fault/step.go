package fault

import "time"

// step is one thing a rule does, in order. An error ends the call.
type step interface {
	run(x *exchange) error
}

// speaker is a step that says events: a caller that wants no stream gets them
// collected in one JSON answer.
type speaker interface {
	events(x *exchange) []event
}

// sayStep says one event, or one for each word.
type sayStep struct {
	event   event // with choice, tool pieces and usage set
	content content
	words   bool // one event per word of the content
	tool    toolTemplate
	form    form
}

func (s sayStep) events(x *exchange) []event {
	e := s.event
	switch {
	case e.kind == eventTool:
		e.tool = s.tool.call(x.vars)
	case s.words:
		var out []event
		for _, word := range s.content.tokens(x.vars) {
			e.text = word
			out = append(out, e)
		}
		return out
	default:
		e.text = s.content.render(x.vars)
	}
	return []event{e}
}

func (s sayStep) run(x *exchange) error {
	for _, e := range s.events(x) {
		if err := x.say(e, s.form); err != nil {
			return err
		}
	}
	return nil
}

func (a answer) run(x *exchange) error {
	for _, e := range a.events(x) {
		if err := x.say(e, form{}); err != nil {
			return err
		}
	}
	return nil
}

// commentStep writes an SSE comment, rawStep any bytes, as part of the body.
type commentStep struct {
	text template
	form form
}

func (s commentStep) run(x *exchange) error {
	if err := x.paced(); err != nil {
		return err
	}
	return x.put(s.form.comment(s.text.render(x.vars), x.plan.newline))
}

type rawStep struct{ content content }

func (s rawStep) run(x *exchange) error {
	if err := x.paced(); err != nil {
		return err
	}
	return x.put([]byte(s.content.render(x.vars)))
}

// wireStep writes bytes on the connection outside of any answer.
type wireStep struct{ content content }

func (s wireStep) run(x *exchange) error { return x.wire([]byte(s.content.render(x.vars))) }

// garbageStep writes pseudo-random bytes, the same for the same seed and call.
type garbageStep struct{ size int }

func (s garbageStep) run(x *exchange) error {
	state := splitmix64(x.seed ^ uint64(x.vars.call))
	for left := s.size; left > 0; {
		chunk := make([]byte, min(left, 32<<10))
		for i := range chunk {
			state = splitmix64(state)
			chunk[i] = byte(state)
		}
		if err := x.wire(chunk); err != nil {
			return err
		}
		left -= len(chunk)
	}
	return nil
}

// headStep sends the head by itself.
type headStep struct{}

func (headStep) run(x *exchange) error { return x.sendHead(nil) }

// endlessStep sends a head whose headers do not end, as far as the peer takes
// it: 64 MiB, then a reset.
type endlessStep struct{}

const endlessLimit = 64 << 20

func (endlessStep) run(x *exchange) error { return x.endlessHead(endlessLimit) }

// bodyStep writes the rule's whole body.
type bodyStep struct{}

func (bodyStep) run(x *exchange) error { return x.putStatic() }

// endStep completes the answer: what follows happens on the idle connection.
type endStep struct{}

func (endStep) run(x *exchange) error { return x.finish() }

type delayStep struct{ pause time.Duration }

func (s delayStep) run(x *exchange) error {
	return x.wait(s.pause)
}

// paceStep sets the pause before each further event of a stream.
type paceStep struct{ pause time.Duration }

func (s paceStep) run(x *exchange) error {
	x.pace = s.pause
	return nil
}

// stallStep does nothing until somebody leaves.
type stallStep struct{}

func (stallStep) run(x *exchange) error {
	return x.stall()
}

type cutStep struct{ reset bool }

func (s cutStep) run(*exchange) error {
	if s.reset {
		return errCutReset
	}
	return errCutFin
}

// repeatStep does its steps several times.
type repeatStep struct {
	times int
	steps []step
}

func (s repeatStep) run(x *exchange) error {
	for range s.times {
		for _, inner := range s.steps {
			if err := inner.run(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s repeatStep) events(x *exchange) []event {
	var out []event
	for range s.times {
		out = append(out, spoken(x, s.steps)...)
	}
	return out
}

// spoken are all events of some steps, those of blocks included.
func spoken(x *exchange, steps []step) []event {
	var out []event
	for _, s := range steps {
		if sp, ok := s.(speaker); ok {
			out = append(out, sp.events(x)...)
		}
	}
	return out
}
