package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func request(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	r, err := chat.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("tools", "tool_choice", "response_format", "max_tokens", "stop", "temperature", "top_p",
		"presence_penalty", "frequency_penalty", "seed", "reasoning_effort", name); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name))
	if err != nil {
		return err
	}
	b := json.AppendText(append(out.Body, '{'), "model", c.Model)
	w := writer{b: append(json.AppendKey(b, "messages"), '[')}
	if err := w.messages(r); err != nil {
		return err
	}
	b = append(w.b, ']')
	if b, err = appendTools(b, r, &ext); err != nil {
		return err
	}
	if !ext.has("format") {
		b = appendFormat(b, r)
	}
	b = appendOptions(b, r, s, &ext)
	if !ext.has("think") {
		if b, err = appendThink(b, r, s.style(c.Model)); err != nil {
			return err
		}
	}
	if s.keepAlive != nil && !ext.has("keep_alive") {
		b = json.AppendMember(b, "keep_alive", s.keepAlive)
	}
	b = ext.appendRest(b)
	b = json.AppendBool(b, "stream", c.Stream) // it is true where it is not said
	out.Body = append(b, '}')
	out.Path = "/api/chat"
	if c.Stream {
		out.Framing = interlock.Lines
	}
	return nil
}

// appendTools appends the caller's functions and the extension's tools. What Ollama cannot be told
// is which must be called.
func appendTools(b []byte, r *chat.Request, ext *extension) ([]byte, error) {
	switch r.Choice.Mode {
	case chat.ToolsRequired, chat.ToolsNamed:
		return nil, interlock.Unsupported("tool_choice", "this model's provider lets the model choose: only auto and none can be asked for")
	case chat.ToolsNone:
		r.Tools = nil
	}
	if len(r.Tools) == 0 && ext.tools.Empty() {
		return b, nil
	}
	b = append(json.AppendKey(b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		b = append(json.AppendComma(b), `{"type":"function","function":{`...)
		b = json.AppendMember(b, "name", t.Name)
		b = json.AppendMember(b, "description", t.Description)
		schema := t.Parameters
		if schema.Empty() {
			schema = json.Value(`{"type":"object","properties":{}}`)
		}
		b = append(json.AppendMember(b, "parameters", schema), "}}"...)
	}
	for t := range ext.tools.Items() {
		b = append(json.AppendComma(b), t...)
	}
	return append(b, ']'), nil
}

// appendFormat appends the shape of the answer: any JSON, or a schema.
func appendFormat(b []byte, r *chat.Request) []byte {
	switch {
	case r.Format.Kind == chat.TextFormat:
		return b
	case r.Format.Kind == chat.SchemaFormat && r.Format.Schema != nil:
		return json.AppendMember(b, "format", r.Format.Schema)
	}
	return json.AppendText(b, "format", "json")
}

// appendOptions appends options: the extension's go before the caller's parameters, and these
// before the configuration's.
func appendOptions(b []byte, r *chat.Request, s *settings, ext *extension) []byte {
	from := len(b)
	b = append(json.AppendKey(b, "options"), '{')
	empty := len(b)
	add := func(key string, v json.Value) {
		if v != nil && ext.options.Get(key) == nil {
			b = json.AppendMember(b, key, v)
		}
	}
	add("num_predict", r.MaxTokens)
	add("temperature", r.Temperature)
	add("top_p", r.TopP)
	add("presence_penalty", r.PresencePenalty)
	add("frequency_penalty", r.FrequencyPenalty)
	add("seed", r.Seed)
	if len(r.Stop) > 0 && ext.options.Get("stop") == nil {
		b = append(json.AppendKey(b, "stop"), '[')
		for _, text := range r.Stop {
			b = append(json.AppendComma(b), text...)
		}
		b = append(b, ']')
	}
	b = appendMembers(b, ext.options)
	said := json.Value(append(append([]byte(nil), b[empty-1:]...), '}'))
	for key, v := range s.options.Members() {
		if said.Get(string(key)) == nil && ext.options.Get(string(key)) == nil && !v.IsNull() {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	if len(b) == empty {
		return b[:from]
	}
	return append(b, '}')
}

// appendThink appends whether, or how much, the model is to think.
func appendThink(b []byte, r *chat.Request, how style) ([]byte, error) {
	if r.ReasoningEffort == nil {
		return b, nil
	}
	effort := r.ReasoningEffort.String()
	level := ""
	switch effort {
	case "none":
	case "minimal", "low":
		level = "low"
	case "medium":
		level = "medium"
	case "high", "xhigh":
		level = "high"
	default:
		return nil, interlock.BadParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
	}
	switch {
	case how == unable && level != "", how == levelled && level == "":
		return nil, interlock.Unsupported("reasoning_effort", "this model does not take the effort "+effort)
	case how == unable:
		return b, nil
	case how == levelled:
		return json.AppendText(b, "think", level), nil
	}
	return json.AppendBool(b, "think", level != ""), nil
}
