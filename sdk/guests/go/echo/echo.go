// Package echo is the reference guest: a plugin for a provider that nobody runs, small enough to
// be written again in any language, and with something of everything in the ABI. What it answers
// to the inputs in sdk/abi/vectors is what any SDK must make of them, byte for byte. The
// provider's format is described in sdk/abi/vectors/README.md.
package echo

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// New makes the plugin. The configuration may name the provider's version: {"version": "1.2"}.
func New(config []byte) (interlock.Plugin, error) {
	version, err := readConfig(config)
	if err != nil {
		return interlock.Plugin{}, err
	}
	return interlock.Plugin{
		Request: func(c *interlock.Call, body []byte, out *interlock.Request) error {
			return request(c, version, body, out)
		},
		Response:      response,
		Events:        events,
		Classify:      classify,
		GuardRequest:  guardBody,
		GuardResponse: guardBody,
		GuardEvents:   guardEvents,
	}, nil
}

func readConfig(config []byte) (version string, err error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return "", interlock.Config("the configuration is not a JSON object")
	}
	version = "1"
	for key, v := range root.Members() {
		if string(key) != "version" {
			return "", interlock.Config("unknown key: " + string(key))
		}
		version = v.String()
		if version == "" {
			return "", interlock.Config("version must be digits and points")
		}
		for _, c := range []byte(version) {
			if c != '.' && c-'0' > 9 {
				return "", interlock.Config("version must be digits and points")
			}
		}
	}
	return version, nil
}

func request(c *interlock.Call, version string, body []byte, out *interlock.Request) error {
	r, err := chat.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("max_tokens", "tools"); err != nil {
		return err
	}
	out.Path = "/v1/echo"
	if c.Stream {
		out.Path = "/v1/echo?stream=1"
		out.Framing = interlock.SSE
	}
	out.Set("echo-version", version)
	b := append(out.Body, '{')
	b = json.AppendText(b, "model", c.Model)
	b = json.AppendMember(b, "limit", r.MaxTokens)
	b = append(json.AppendKey(b, "turns"), '[')
	for i := range r.Messages {
		if b, err = turn(json.AppendComma(b), &r.Messages[i]); err != nil {
			return err
		}
	}
	b = append(b, ']')
	if len(r.Tools) > 0 {
		b = append(json.AppendKey(b, "tools"), '[')
		for i := range r.Tools {
			b = append(json.AppendComma(b), r.Tools[i].Name...)
		}
		b = append(b, ']')
	}
	out.Body = append(b, '}')
	return nil
}

var words = [...]string{
	chat.System: "rule", chat.Developer: "rule", chat.User: "user", chat.Assistant: "echo", chat.ToolRole: "tool",
}

func turn(b []byte, m *chat.Message) ([]byte, error) {
	b = json.AppendText(append(b, '{'), "by", words[m.Role])
	b = append(json.AppendKey(b, "text"), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != chat.Text {
			return nil, interlock.Unsupported("messages", "echo hears text only")
		}
		b = append(json.AppendComma(b), p.Text...)
	}
	b = append(b, ']')
	b = json.AppendMember(b, "call", m.ToolCallID)
	if len(m.ToolCalls) > 0 {
		b = append(json.AppendKey(b, "calls"), '[')
		for i := range m.ToolCalls {
			t := &m.ToolCalls[i]
			b = append(json.AppendComma(b), '{')
			b = json.AppendMember(b, "id", t.ID)
			b = json.AppendMember(b, "name", t.Name)
			b = append(json.AppendMember(b, "with", t.Arguments), '}')
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	o := chat.NewWhole(c)
	if f := failure(root.Get("error")); f != nil {
		return nil, f
	}
	begin(&o, root)
	o.Text(0, root.Get("say"))
	for call := range root.Get("calls").Items() {
		o.ToolCall(0, call.Get("id"), call.Get("name"))
		o.ArgumentsJSON(0, call.Get("with"))
	}
	if err := end(&o, root); err != nil {
		return nil, err
	}
	return o.AppendBody(dst), nil
}

func begin(o *chat.Out, v json.Value) {
	at, _ := v.Get("at").Uint()
	o.Begin(v.Get("id"), at)
}

func end(o *chat.Out, v json.Value) error {
	why := v.Get("end")
	switch {
	case why.Is("done"):
		o.Finish(0, chat.Stop)
	case why.Is("limit"):
		o.Finish(0, chat.Length)
	case why.Is("blocked"):
		o.Finish(0, chat.ContentFilter)
	default:
		return interlock.Malformed("the answer has no known end")
	}
	var u chat.Usage
	u.Prompt, _ = v.Get("in").Uint()
	u.Completion, _ = v.Get("out").Uint()
	u.Cached, _ = v.Get("known").Uint()
	o.Usage(u)
	return nil
}

func events(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
	o := chat.NewChunks(c, out)
	rest := o.LoadState(c.State)
	if len(c.State) > 0 && !rest.OK() {
		return interlock.Internal("the state is not one of echo's")
	}
	err := each(&o, in, out)
	out.State = o.AppendState(out.State[:0])
	return err
}

func each(o *chat.Out, in []interlock.Frame, out *interlock.Events) error {
	for i := range in {
		if out.Done {
			return nil
		}
		v, err := json.Parse(in[i].Data)
		if err != nil || !v.IsObject() {
			return interlock.Malformed("an event is not a JSON object")
		}
		switch kind := v.Get("t").Text(); string(kind) {
		case "start":
			begin(o, v)
		case "say":
			o.Text(0, v.Get("text"))
		case "call":
			o.ToolCall(0, v.Get("id"), v.Get("name"))
		case "with":
			o.Arguments(0, v.Get("part"))
		case "end":
			if err := end(o, v); err != nil {
				return err
			}
			out.Done = true
		case "error":
			if f := failure(v); f != nil {
				return f
			}
		}
	}
	return nil
}

// failure reads {"kind", "text"}; nil when v is no object.
func failure(v json.Value) *interlock.Failure {
	if !v.IsObject() {
		return nil
	}
	kind := v.Get("kind").String()
	f := &interlock.Failure{Type: kind, Message: v.Get("text").String()}
	switch kind {
	case "busy":
		f.Class = interlock.Overloaded
	case "slow":
		f.Class = interlock.RateLimited
	case "long":
		f.Class = interlock.ContextOverflow
	case "key":
		f.Class = interlock.UpstreamAuth
	}
	return f
}

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	var f interlock.Failure
	if root, err := json.Parse(in.Body); err == nil {
		if said := failure(root.Get("error")); said != nil {
			f = *said
		}
	}
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}
