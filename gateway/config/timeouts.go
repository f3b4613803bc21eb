package config

import "time"

// Timeouts are the clocks of an attempt. One that is not set takes its value when the kind of
// request is known: see Resolve.
type Timeouts struct {
	// Name, connection and TLS handshake; 3s where left out.
	Connect Opt[time.Duration] `yaml:"connect" min:"1ms"`
	// From the request sent to the whole head of the answer; 60s where left out, 5m for a
	// reasoning model, for a call that does not stream the deadline less the reserve.
	FirstByte Opt[time.Duration] `yaml:"first_byte" min:"1ms"`
	// From the request sent to the first meaningful output; 120s where left out, otherwise as
	// first_byte.
	FirstOutput Opt[time.Duration] `yaml:"first_output" min:"1ms"`
	// The longest silence within an answer; any byte ends it, comments too; 60s where left
	// out, 5m for a reasoning model.
	Idle Opt[time.Duration] `yaml:"idle" min:"1ms"`
}

// The clocks where none is configured.
const (
	DefaultConnect     = 3 * time.Second
	DefaultFirstByte   = 60 * time.Second
	DefaultFirstOutput = 120 * time.Second
	DefaultIdle        = 60 * time.Second
	// DefaultReasoning is first_byte, first_output and idle of a model that reasons.
	DefaultReasoning = 300 * time.Second
)

// Call is what the clocks of an attempt depend on.
type Call struct {
	Stream    bool
	Reasoning bool          // the catalogue says that the model reasons
	Deadline  time.Duration // of the request's budget
	Reserve   time.Duration // of the request's budget
}

// Clocks are the clocks of one attempt; none is zero.
type Clocks struct{ Connect, FirstByte, FirstOutput, Idle time.Duration }

// Resolve returns the clocks of an attempt: those set for the model, else those set for the
// channel, else the defaults for this kind of call.
func (t Timeouts) Resolve(model Timeouts, c Call) Clocks {
	byDefault := Clocks{DefaultConnect, DefaultFirstByte, DefaultFirstOutput, DefaultIdle}
	if c.Reasoning {
		byDefault = Clocks{DefaultConnect, DefaultReasoning, DefaultReasoning, DefaultReasoning}
	}
	if whole := c.Deadline - c.Reserve; !c.Stream && whole > 0 {
		byDefault.FirstByte, byDefault.FirstOutput = whole, whole
	}
	return Clocks{
		Connect:     first(model.Connect, t.Connect, byDefault.Connect),
		FirstByte:   first(model.FirstByte, t.FirstByte, byDefault.FirstByte),
		FirstOutput: first(model.FirstOutput, t.FirstOutput, byDefault.FirstOutput),
		Idle:        first(model.Idle, t.Idle, byDefault.Idle),
	}
}

func first[T any](a, b Opt[T], c T) T {
	if a.Set {
		return a.Value
	}
	if b.Set {
		return b.Value
	}
	return c
}
