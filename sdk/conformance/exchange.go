package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	sdkjson "github.com/interlock-gateway/interlock/sdk/go/json"
)

// fixture plays one exchange, on two instances in turn: it must not matter which one answers.
func (c *checker) fixture(x *Fixture) {
	c.at(x.Name, "configure")
	var pair [2]Caller
	for i := range pair {
		if pair[i] = c.opened("its configuration", x.config); pair[i] == nil {
			c.found("its configuration is refused")
			return
		}
	}
	if x.wantVerdict != nil {
		c.guard(x, pair[0])
		return
	}
	state := ""
	if x.request != nil {
		q, ended := c.playRequest(x, pair)
		if ended {
			return
		}
		state = q.state
	}
	var whole, put *answer
	switch {
	case x.answer == nil:
	case x.answer.status/100 == 2:
		whole = c.playAnswer(x, pair, state)
	default:
		c.playClassify(x, pair, state)
	}
	if x.hasStream {
		put = c.playStream(x, pair, state)
	}
	if whole != nil && put != nil {
		c.at(x.Name, "stream against whole")
		if d := same(comparable(whole), comparable(put)); d != "" {
			c.found("%s", d)
		}
	}
}

// comparable is an answer without what may differ between two answers that say the same.
func comparable(a *answer) []byte {
	b := answer{Object: a.Object, Usage: a.Usage, Choices: make([]*choice, len(a.Choices))}
	for i, from := range a.Choices {
		to := *from
		if m := &to.Message; m.Content != nil && *m.Content == "" {
			m.Content = nil
		}
		b.Choices[i] = &to
	}
	text, _ := json.Marshal(b)
	return text
}

// twice makes the same call on both instances and again on the first: the answers must be the
// same bytes.
func (c *checker) twice(pair [2]Caller, op uint32, in []byte, codes ...string) (out []byte, e *interlock.Error, ok bool) {
	out, e, ok = c.ask(pair[0], op, in, codes...)
	if !ok {
		return nil, nil, false
	}
	for _, to := range []Caller{pair[1], pair[0]} {
		again, failed, ok := c.call(to, op, in)
		if !ok {
			return nil, nil, false
		}
		if failed != (e != nil) || !failed && string(again) != string(out) {
			c.found("the same call is answered differently: it is no pure function")
			return nil, nil, false
		}
	}
	return out, e, true
}

func (c *checker) playRequest(x *Fixture, pair [2]Caller) (q *providerRequest, ended bool) {
	c.at(x.Name, "request")
	in := x.context.request(x.request)
	out, e, ok := c.twice(pair, interlock.OpRequest, in, interlock.CodeBadRequest, interlock.CodeUnsupportedParameter)
	switch {
	case !ok:
		return nil, true
	case e != nil:
		if x.wantError == nil {
			c.found("is refused: %v", e)
			c.report.answered(x.Name, "error.json", errorJSON(e))
		} else if d := differs(x.wantError, errorJSON(e)); d != "" {
			c.found("%s", d)
			c.report.answered(x.Name, "error.json", errorJSON(e))
		}
		return nil, true
	case x.wantError != nil && x.answer == nil && !x.hasStream:
		c.found("is not refused")
		return nil, true
	}
	q, err := decodeRequest(out)
	if err != nil {
		c.found("%v", err)
		return nil, true
	}
	c.checkRequest(q)
	if x.wantBody != nil {
		if d := same(x.wantBody, []byte(q.body)); d != "" {
			c.found("the body: %s", d)
			c.report.answered(x.Name, "provider.json", []byte(q.body))
		}
	}
	if x.wantHead != "" && x.wantHead != q.head() {
		c.found("the head is\n%s\nwant\n%s", q.head(), x.wantHead)
		c.report.answered(x.Name, "provider.head", []byte(q.head()))
	}
	c.cuts(pair[0], interlock.OpRequest, in)
	c.cutBody(pair[0], x.request, func(body []byte) {
		c.report.Calls++
		out, failed, err := pair[0].Call(interlock.OpRequest, x.context.request(body), nil)
		if err != nil {
			c.found("a body cut short has no result: %v", err)
		} else if !failed {
			c.found("a body cut short is accepted: %.100q gives %.100q", body, out)
		}
	})
	return q, false
}

// head is the method and path, and then a header a line, sorted.
func (q *providerRequest) head() string {
	var lines []string
	for _, h := range q.header {
		lines = append(lines, "\n"+h.Name+": "+h.Value)
	}
	slices.Sort(lines)
	return q.method + " " + q.path + strings.Join(lines, "")
}

func errorJSON(e *interlock.Error) []byte {
	b, _ := json.Marshal(map[string]any{"code": e.Code, "message": e.Message, "param": e.Param, "status": e.Status})
	return b
}

func failureJSON(f *interlock.Failure) []byte {
	m := map[string]any{"class": f.Class, "code": f.Code, "type": f.Type, "message": f.Message, "param": f.Param, "status": f.Status}
	if f.HasRetryAfter {
		m["retry_after"] = f.RetryAfter
	}
	b, _ := json.Marshal(m)
	return b
}

// failed compares a failure with what the fixture wants.
func (c *checker) failed(x *Fixture, f *interlock.Failure) {
	c.checkFailure(f)
	if x.wantFailure == nil {
		c.found("fails: %s", failureJSON(f))
		c.report.answered(x.Name, "failure.json", failureJSON(f))
	} else if d := differs(x.wantFailure, failureJSON(f)); d != "" {
		c.found("%s", d)
		c.report.answered(x.Name, "failure.json", failureJSON(f))
	}
}

// refused compares an error with what the fixture wants.
func (c *checker) refused(x *Fixture, e *interlock.Error) {
	if x.wantError == nil {
		c.found("fails: %v", e)
		c.report.answered(x.Name, "error.json", errorJSON(e))
	} else if d := differs(x.wantError, errorJSON(e)); d != "" {
		c.found("%s", d)
		c.report.answered(x.Name, "error.json", errorJSON(e))
	}
}

func (c *checker) playAnswer(x *Fixture, pair [2]Caller, state string) *answer {
	c.at(x.Name, "response")
	in := x.context.answer(state, x.answer)
	out, e, ok := c.twice(pair, interlock.OpResponse, in, interlock.CodeUpstreamMalformed)
	if !ok {
		return nil
	}
	if e != nil {
		c.refused(x, e)
		return nil
	}
	body, f, err := decodeResponse(out)
	if err != nil {
		c.found("%v", err)
		return nil
	}
	if f != nil {
		c.failed(x, f)
		return nil
	}
	if x.wantFailure != nil || x.wantError != nil {
		c.found("does not fail")
	}
	c.cuts(pair[0], interlock.OpResponse, in)
	c.cutBody(pair[0], x.answer.body, func(part []byte) {
		cut := *x.answer
		cut.body = part
		out, failed, ok := c.call(pair[0], interlock.OpResponse, x.context.answer(state, &cut))
		if !ok || failed {
			return
		}
		if _, f, err := decodeResponse(out); err != nil || f == nil {
			c.found("an answer cut short is taken for a whole one: %.100q", part)
		}
	})
	if x.context.Endpoint != "chat_completions" {
		if !sdkjson.Valid([]byte(body)) {
			c.found("the answer is not JSON")
		} else if d := differs(orEmpty(x.want), []byte(body)); d != "" {
			c.found("%s", d)
			c.report.answered(x.Name, "want.json", []byte(body))
		}
		return nil
	}
	a, wrong := readAnswer(body)
	for _, w := range wrong {
		c.found("%s", w)
	}
	if x.want != nil {
		if d := differs(x.want, []byte(body)); d != "" {
			c.found("%s", d)
			c.report.answered(x.Name, "want.json", []byte(body))
		}
	}
	return a
}

func orEmpty(want []byte) []byte {
	if want == nil {
		return []byte("{}")
	}
	return want
}

func (c *checker) playClassify(x *Fixture, pair [2]Caller, state string) {
	c.at(x.Name, "classify")
	in := x.context.answer(state, x.answer)
	out, e, ok := c.twice(pair, interlock.OpClassify, in)
	if !ok || e != nil {
		return
	}
	r := interlock.NewReader(out)
	f := decodeFailure(&r)
	if !r.OK() {
		c.found("%v", errResult)
		return
	}
	c.failed(x, f)
	c.cuts(pair[0], interlock.OpClassify, in)
}

// played is what a whole stream comes to.
type played struct {
	frames  []frame
	done    bool
	failure *interlock.Failure
	err     *interlock.Error
}

// play sends the frames in batches that end behind the indexes for which cut is true, and the end
// of the body when the answer did not end before.
func (c *checker) play(x *Fixture, pair [2]Caller, state string, cut func(i int) bool) (p played, ok bool) {
	turn := 0
	step := func(batch []frame, ended bool) bool {
		to := pair[turn%2]
		turn++
		out, e, ok := c.ask(to, interlock.OpEvents, x.context.events(state, batch, ended), interlock.CodeUpstreamMalformed)
		if !ok {
			return false
		}
		if p.err = e; e != nil {
			return true
		}
		r, err := decodeEvents(out)
		if err != nil {
			c.found("%v", err)
			return false
		}
		c.checkState(r.state)
		state = r.state
		p.frames = append(p.frames, r.frames...)
		p.done, p.failure = r.done, r.failure
		return true
	}
	over := func() bool { return p.done || p.failure != nil || p.err != nil }
	from := 0
	for i := range x.stream {
		if i < len(x.stream)-1 && !cut(i) {
			continue
		}
		if !step(x.stream[from:i+1], false) {
			return p, false
		}
		if over() {
			return p, true
		}
		from = i + 1
	}
	return p, step(nil, true)
}

func (c *checker) playStream(x *Fixture, pair [2]Caller, state string) *answer {
	c.at(x.Name, "events")
	p, ok := c.play(x, pair, state, func(int) bool { return true })
	if !ok {
		return nil
	}
	random := rand.New(rand.NewPCG(1, 2))
	for name, cut := range map[string]func(int) bool{
		"all frames in one batch": func(int) bool { return false },
		"two frames a batch":      func(i int) bool { return i%2 == 1 },
		"batches by chance":       func(int) bool { return random.IntN(3) == 0 },
	} {
		other, ok := c.play(x, pair, state, cut)
		if !ok {
			return nil
		}
		if d := p.differs(&other); d != "" {
			c.found("%s give another answer than one a batch: %s", name, d)
		}
	}
	c.cuts(pair[0], interlock.OpEvents, x.context.events(state, x.stream, true))
	if p.err != nil {
		c.refused(x, p.err)
		return nil
	}
	s := &assembly{}
	if x.context.Endpoint == "chat_completions" {
		for _, f := range p.frames {
			s.add(f)
		}
	}
	if p.failure != nil {
		c.failed(x, p.failure)
		for _, w := range s.wrong {
			c.found("%s", w)
		}
		return nil
	}
	if x.wantFailure != nil || x.wantError != nil {
		c.found("does not fail")
		return nil
	}
	if !p.done {
		c.found("the answer is not whole at the stream's end")
	}
	if x.context.Endpoint != "chat_completions" {
		return nil
	}
	a, wrong := s.result(true)
	for _, w := range wrong {
		c.found("%s", w)
	}
	if x.want != nil {
		text, _ := json.Marshal(a)
		if d := differs(x.want, text); d != "" {
			c.found("%s", d)
			c.report.answered(x.Name, "want.json", text)
		}
	}
	return a
}

func (p *played) differs(o *played) string {
	for i := range min(len(p.frames), len(o.frames)) {
		if p.frames[i] != o.frames[i] {
			return fmt.Sprintf("event %d is %.200q and %.200q", i, p.frames[i].data, o.frames[i].data)
		}
	}
	if len(p.frames) != len(o.frames) {
		return fmt.Sprintf("%d events and %d", len(p.frames), len(o.frames))
	}
	if p.done != o.done || (p.failure == nil) != (o.failure == nil) || (p.err == nil) != (o.err == nil) {
		return "it ends differently"
	}
	if p.failure != nil && *p.failure != *o.failure {
		return "it fails differently"
	}
	return ""
}

// cuts sends an input cut at every byte, or at 500 of them: the answer must be an error.
func (c *checker) cuts(to Caller, op uint32, in []byte) {
	step := len(in)/500 + 1
	for at := 0; at < len(in); at += step {
		_, failed, ok := c.call(to, op, in[:at:at])
		if !ok {
			return
		}
		if !failed {
			c.found("an input of %d bytes, cut at %d, is answered", len(in), at)
			return
		}
	}
}

// cutBody calls try with a document cut at every byte, or at 500 of them.
func (c *checker) cutBody(_ Caller, body []byte, try func([]byte)) {
	if !sdkjson.Valid(body) {
		return
	}
	step := len(body)/500 + 1
	for at := 0; at < len(body); at += step {
		if sdkjson.Valid(body[:at]) {
			continue
		}
		try(body[:at:at])
	}
}
