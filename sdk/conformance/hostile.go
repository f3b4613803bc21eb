package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	sdkjson "github.com/interlock-gateway/interlock/sdk/go/json"
)

// hostileTexts are bodies, answers and events that nobody means well with.
func hostileTexts() []string {
	deep := strings.Repeat("[", 100_000)
	huge := strings.Repeat("9", 5_000)
	message := func(s string) string { return `{"model":"m","messages":[` + s + `]}` }
	user := func(content string) string { return message(`{"role":"user","content":` + content + `}`) }
	return []string{
		"", " ", "null", "true", "0", `""`, "[]", "{}", "[{}]", "{", "}", "\x00", "\xff\xfe", "\ufeff{}", "[DONE]", "<html></html>",
		deep, deep + strings.Repeat("]", 100_000), strings.Repeat(`{"a":`, 2_000), strings.Repeat(`{"error":`, 127) + "{}" + strings.Repeat("}", 127),
		huge, "-", "1e999999", `{"a":` + huge + `}`, `{"a":1e999999}`, `{"\ud800":1}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\n\"}", `{"a":"\u00"}`,
		`{"error":null}`, `{"error":[]}`, `{"error":"x"}`, `{"error":{}}`, `{"error":{"code":{},"type":[],"message":1,"status":true}}`, `{"message":{"message":{}}}`,
		`{"type":1}`, `{"type":"error"}`, `{"type":null,"delta":null,"message":null,"index":null,"usage":null}`, `{"choices":[{}],"usage":{}}`, `{"choices":1,"candidates":1,"content":1,"output":1,"message":1}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`, `{"content":[{"type":"tool_use"}],"stop_reason":1,"usage":[]}`,
		`{"usage":{"input_tokens":-1,"output_tokens":1e300,"total_tokens":"7"},"index":-1}`, `{"index":4294967296}`, `{"index":18446744073709551615,"type":"content_block_start","content_block":{}}`,
		message(""), message("null"), message("1"), message("{}"), message(`{"role":null}`), message(`{"role":"\u0075ser","content":[]}`), message(deep),
		user("null"), user("1"), user(`[{"type":"image_url","image_url":{"url":"data:,"}}]`), user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]`),
		user(`"\ud800"`), user(`"` + strings.Repeat(`\n`, 2_000) + `"`), user(`"` + strings.Repeat("a", 1<<16) + `"`), user(`[` + strings.Repeat(`{"type":"text","text":""},`, 500) + `{"type":"text","text":""}]`),
		message(strings.Repeat(`{"role":"assistant","content":""},`, 500) + `{"role":"user","content":"a"}`),
		message(`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"` + strings.Repeat("[", 1000) + `"}}]},{"role":"user","content":"a"}`),
		message(`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"not json"}}]},{"role":"tool","tool_call_id":"b","content":"a"}`),
		message(`{"role":"assistant","content":"a","reasoning_content":"r","provider_data":[{"provider":1},{"provider":"x","reasoning_bytes":1e99},{}]},{"role":"user","content":"a"}`),
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + strings.Repeat(`{"items":`, 100) + "{}" + strings.Repeat("}", 100) + `}}]}`,
		`{"messages":[{"role":"user","content":"a"}],"max_tokens":` + huge + `}`, `{"messages":[{"role":"user","content":"a"}],"temperature":1e999}`, `{"messages":[{"role":"user","content":"a"}],"n":4294967297}`,
		`{"messages":[{"role":"user","content":"a"}],"no_plugin_has_this_parameter":1}`,
		`{` + strings.Repeat(`"a":1,`, 1_000) + `"a":1}`,
	}
}

var hostileStates = []string{
	"", "\x00", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x01\x00\x00\x00", strings.Repeat("\xff", 200), strings.Repeat("\x00", 200),
	strings.Repeat("\x08\x00\x00\x00", 50), strings.Repeat("\x00\x00\x00\x80", 50), "{}",
}

// hostile sends what nobody should send, with the configuration {} or the first fixture's: every
// call has to end, as an error or as a result that is well formed.
func (c *checker) hostile(fixtures []Fixture) {
	ctx := defaultContext()
	states := append([]string(nil), hostileStates...)
	valid := []string{""}
	for i := range fixtures {
		if len(fixtures[i].stream) > 0 && string(fixtures[i].config) == "{}" {
			left, damaged := c.statesOf(&fixtures[i])
			valid, states = append(valid, left...), append(states, damaged...)
			break
		}
	}
	for i, text := range hostileTexts() {
		what := fmt.Sprintf("hostile text %d (%.40q)", i, text)
		for _, stream := range []bool{false, true} {
			ctx.Stream = stream
			c.hostileText(ctx, what, text, valid[i%len(valid)])
		}
		if c.ctx.Err() != nil {
			return
		}
	}
	for i, state := range states {
		what := fmt.Sprintf("hostile state %d", i)
		if c.answers["response"] {
			c.hostileAnswer(ctx, what, `{"type":"x"}`, state, false)
		}
		if c.answers["events"] {
			c.hostileEvents(ctx, what, `{"type":"x"}`, state, false)
		}
		c.hostileGuards(ctx, what, `{"type":"x"}`, state)
	}
}

// statesOf returns the states that a stream's first frames leave, and those damaged.
func (c *checker) statesOf(x *Fixture) (valid, damaged []string) {
	c.at(x.Name, "events")
	state := ""
	for i := range min(len(x.stream), 4) {
		out, failed, ok := c.call(c.open, interlock.OpEvents, x.context.events(state, x.stream[i:i+1], false))
		if !ok || failed {
			break
		}
		r, err := decodeEvents(out)
		if err != nil {
			break
		}
		state = r.state
		valid = append(valid, state)
		for at := 0; at < len(state); at += len(state)/64 + 1 {
			damaged = append(damaged, state[:at], state[:at]+"\xff"+state[at+1:])
		}
	}
	return valid, damaged
}

func (c *checker) hostileText(ctx callContext, what, text, state string) {
	if c.answers["request"] {
		c.at("", "request, "+what)
		out, e, ok := c.ask(c.open, interlock.OpRequest, ctx.request([]byte(text)), interlock.CodeBadRequest, interlock.CodeUnsupportedParameter)
		if ok && e == nil {
			if q, err := decodeRequest(out); err != nil {
				c.found("%v", err)
			} else if c.checkRequest(q); !sdkjson.Valid([]byte(text)) {
				c.found("is accepted")
			} else if strings.Contains(text, "no_plugin_has_this_parameter") {
				c.found("a parameter that nobody knows is dropped")
			}
		}
	}
	if c.answers["response"] {
		c.hostileAnswer(ctx, what, text, state, true)
	}
	if c.answers["events"] {
		c.hostileEvents(ctx, what, text, state, true)
	}
	if c.answers["classify"] {
		c.at("", "classify, "+what)
		for _, status := range []uint32{100, 302, 400, 401, 403, 404, 413, 422, 429, 500, 503, 529, 999, 1 << 31} {
			a := &providerAnswer{status: status, body: []byte(text), header: []interlock.Field{{Name: "content-type", Value: "text/html"}, {Name: "retry-after", Value: "soon"}}}
			out, _, ok := c.ask(c.open, interlock.OpClassify, ctx.answer("", a))
			if !ok {
				break
			}
			r := interlock.NewReader(out)
			f := decodeFailure(&r)
			if !r.OK() {
				c.found("%v", errResult)
			}
			c.checkFailure(f)
		}
	}
	c.hostileGuards(ctx, what, text, "")
}

func (c *checker) hostileAnswer(ctx callContext, what, text, state string, strict bool) {
	c.at("", "response, "+what)
	out, e, ok := c.ask(c.open, interlock.OpResponse, ctx.answer(state, &providerAnswer{status: 200, body: []byte(text)}), interlock.CodeUpstreamMalformed, interlock.CodeInternal)
	if ok && e == nil {
		body, f, err := decodeResponse(out)
		switch {
		case err != nil:
			c.found("%v", err)
		case f != nil:
			c.checkFailure(f)
		case !strict: // what comes of a state that nobody left is not for the plugin to say
		case !sdkjson.Valid([]byte(body)):
			c.found("the answer is not JSON: %.200q", body)
		case !sdkjson.Valid([]byte(text)):
			c.found("is taken for an answer")
		}
	}
}

func (c *checker) hostileEvents(ctx callContext, what, text, state string, strict bool) {
	c.at("", "events, "+what)
	for _, name := range []string{"", "error", "exception:throttlingException", "message_start", strings.Repeat("x", 1000)} {
		for _, ended := range []bool{false, true} {
			in := ctx.events(state, []frame{{name, text}, {"", text}}, ended)
			out, e, ok := c.ask(c.open, interlock.OpEvents, in, interlock.CodeUpstreamMalformed, interlock.CodeInternal)
			if !ok {
				return
			}
			if e != nil {
				continue
			}
			r, err := decodeEvents(out)
			if err != nil {
				c.found("%v", err)
				return
			}
			c.checkState(r.state)
			if r.failure != nil {
				c.checkFailure(r.failure)
			}
			for _, f := range r.frames {
				if strict && (strings.ContainsAny(f.data, "\r\n") || !sdkjson.Valid([]byte(f.data))) {
					c.found("an event is not one line of JSON: %.200q", f.data)
				}
			}
		}
	}
}

func (c *checker) hostileGuards(ctx callContext, what, text, state string) {
	for _, s := range []subject{{}, {Key: text, Alias: text, Labels: json.RawMessage(text)}} {
		for name, op := range operations {
			if !strings.HasPrefix(name, "guard_") || !c.answers[name] {
				continue
			}
			c.at("", name+", "+what)
			in := ctx.guard(&s)
			events := op == interlock.OpGuardEvents
			if events {
				in.Str(state)
				appendFrames(&in, []frame{{"", text}}, false)
			} else {
				in.Str(text)
			}
			out, _, ok := c.ask(c.open, op, in, interlock.CodeBadRequest, interlock.CodeUpstreamMalformed, interlock.CodeInternal)
			if !ok || out == nil {
				continue
			}
			v, err := decodeVerdict(out, events)
			if err != nil {
				c.found("%v", err)
				continue
			}
			c.checkVerdict(v)
			c.checkState(v.state)
		}
	}
}
