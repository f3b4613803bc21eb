package conformance

import (
	"encoding/json"
	"regexp"
	"strings"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	sdkjson "github.com/interlock-gateway/interlock/sdk/go/json"
)

var actions = [...]string{"pass", "use", "refuse"}

var reasonFormat = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

// guard asks a guard about what the fixture has: a request, an answer, a stream.
func (c *checker) guard(x *Fixture, to Caller) {
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
		c.at(x.Name, look.name)
		in := x.context.guard(&x.subject)
		in.Bytes(look.body)
		out, e, ok := c.twice([2]Caller{to, to}, look.op, in)
		if !ok || e != nil {
			continue
		}
		v, err := decodeVerdict(out, false)
		if err != nil {
			c.found("%v", err)
			continue
		}
		c.checkVerdict(v)
		if v.action == uint32(interlock.Use) && !sdkjson.Valid([]byte(v.body)) {
			c.found("the body to be used is not JSON: %.200q", v.body)
			continue
		}
		c.wantVerdict(x, v, v.body)
		c.cuts(to, look.op, in)
	}
	if x.hasStream {
		c.guardStream(x, to)
	}
}

func (x *Fixture) answerBody() []byte {
	if x.answer == nil {
		return nil
	}
	return x.answer.body
}

// guardStream asks frame by frame, as far as the first refusal; the verdict is the last, and the
// body all that passed, a line each.
func (c *checker) guardStream(x *Fixture, to Caller) {
	c.at(x.Name, "guard_events")
	state := ""
	passed := []string{}
	var last *verdict
	used := false
	for i := 0; i <= len(x.stream); i++ {
		var batch []frame
		if i < len(x.stream) {
			batch = x.stream[i : i+1]
		}
		in := x.context.guard(&x.subject)
		in.Str(state)
		appendFrames(&in, batch, i == len(x.stream))
		out, e, ok := c.twice([2]Caller{to, to}, interlock.OpGuardEvents, in)
		if !ok || e != nil {
			return
		}
		v, err := decodeVerdict(out, true)
		if err != nil {
			c.found("%v", err)
			return
		}
		c.checkVerdict(v)
		c.checkState(v.state)
		state, last = v.state, v
		switch v.action {
		case uint32(interlock.Use):
			used = true
			batch = v.frames
		case uint32(interlock.Refuse):
			c.wantVerdict(x, v, "")
			return
		}
		for _, f := range batch {
			if strings.ContainsAny(f.data, "\r\n") || !sdkjson.Valid([]byte(f.data)) {
				c.found("an event to be used is not one line of JSON: %.200q", f.data)
			}
			passed = append(passed, f.data)
		}
	}
	if used {
		last.action = uint32(interlock.Use)
	}
	c.wantVerdict(x, last, "["+strings.Join(passed, ",")+"]")
}

func (c *checker) checkVerdict(v *verdict) {
	if v.action >= uint32(len(actions)) {
		c.found("there is no action %d", v.action)
	}
	if v.action == uint32(interlock.Refuse) && !reasonFormat.MatchString(v.reason) {
		c.found("the reason %q is no code", v.reason)
	}
}

func (c *checker) wantVerdict(x *Fixture, v *verdict, body string) {
	if v.action >= uint32(len(actions)) {
		return
	}
	got := map[string]any{"action": actions[v.action]}
	switch v.action {
	case uint32(interlock.Use):
		got["body"] = json.RawMessage(body)
	case uint32(interlock.Refuse):
		got["reason"], got["message"] = v.reason, v.message
	}
	text, err := json.Marshal(got)
	if err != nil {
		c.found("%v", err)
		return
	}
	if d := differs(x.wantVerdict, text); d != "" {
		c.found("%s", d)
		c.report.answered(x.Name, "verdict.json", text)
	}
}
