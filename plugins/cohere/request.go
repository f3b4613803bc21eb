package cohere

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
	ext, err := readExtension(r.Other(name), s)
	if err != nil {
		return err
	}
	out.Path = "/v2/chat"
	w := writer{b: json.AppendText(append(out.Body, '{'), "model", c.Model)}
	if err := w.messages(r.Messages); err != nil {
		return err
	}
	b := w.appendDocuments(w.b, ext.documents)
	if c.Stream {
		b = json.AppendBool(b, "stream", true)
	}
	p := params{b: b, ext: &ext}
	if err := p.all(c, s, r); err != nil {
		return err
	}
	b = json.AppendMember(p.b, "safety_mode", s.safetyMode)
	out.Body = append(ext.append(b), '}')
	return nil
}

// params writes what is made of OpenAI's parameters, but for what the caller's extension has.
type params struct {
	b   []byte
	ext *extension
}

func (p *params) set(key string, v json.Value) {
	if v != nil && !p.ext.has(key) {
		p.b = json.AppendMember(p.b, key, v)
	}
}

// numbers are the provider's names of the parameters that are numbers.
var numbers = [...]string{"max_tokens", "temperature", "p", "presence_penalty", "frequency_penalty", "seed"}

func (p *params) all(c *interlock.Call, s *settings, r *chat.Request) error {
	if r.Seed != nil {
		if _, ok := r.Seed.Uint(); !ok {
			return interlock.BadParam("seed", "must not be negative for this model's provider")
		}
	}
	for i, v := range [...]json.Value{r.MaxTokens, r.Temperature, r.TopP, r.PresencePenalty, r.FrequencyPenalty, r.Seed} {
		p.set(numbers[i], v)
	}
	if len(r.Stop) > 0 {
		stop := []byte{'['}
		for _, s := range r.Stop {
			stop = append(json.AppendComma(stop), s...)
		}
		p.set("stop_sequences", append(stop, ']'))
	}
	if err := p.tools(r); err != nil {
		return err
	}
	switch r.Format.Kind {
	case chat.ObjectFormat:
		p.set("response_format", json.Value(`{"type":"json_object"}`))
	case chat.SchemaFormat:
		p.set("response_format", append(json.AppendMember([]byte(`{"type":"json_object"`), "json_schema", r.Format.Schema), '}'))
	}
	think, err := thinking(c, s, r)
	if err != nil {
		return err
	}
	p.set("thinking", think)
	return nil
}
