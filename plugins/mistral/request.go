package mistral

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func request(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	r, err := chat.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("tools", "tool_choice", "parallel_tool_calls", "response_format", "n", "max_tokens", "stop",
		"temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort", "prediction", name); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name), s)
	if err != nil {
		return err
	}
	out.Path = "/v1/chat/completions"
	w := writer{b: json.AppendText(append(out.Body, '{'), "model", c.Model)}
	if err := w.messages(r.Messages); err != nil {
		return err
	}
	b := w.b
	if c.Stream {
		b = json.AppendBool(b, "stream", true)
	}
	p := params{b: b, ext: &ext}
	if err := p.all(r); err != nil {
		return err
	}
	b = json.AppendMember(p.b, "safe_prompt", s.safePrompt)
	b = json.AppendMember(b, "guardrails", s.guardrails)
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
var numbers = [...]string{"max_tokens", "temperature", "top_p", "presence_penalty", "frequency_penalty", "random_seed"}

func (p *params) all(r *chat.Request) error {
	if r.Seed != nil {
		if _, ok := r.Seed.Uint(); !ok {
			return interlock.BadParam("seed", "must not be negative for this model's provider")
		}
	}
	for i, v := range [...]json.Value{r.MaxTokens, r.Temperature, r.TopP, r.PresencePenalty, r.FrequencyPenalty, r.Seed} {
		p.set(numbers[i], v)
	}
	if r.N > 1 {
		p.set("n", strconv.AppendInt(nil, int64(r.N), 10))
	}
	if len(r.Stop) > 0 {
		stop := []byte{'['}
		for _, s := range r.Stop {
			stop = append(json.AppendComma(stop), s...)
		}
		p.set("stop", append(stop, ']'))
	}
	p.b = appendTools(p.b, r, p.ext)
	p.choice(r)
	p.format(&r.Format)
	effort, err := effortOf(r.ReasoningEffort)
	if err != nil {
		return err
	}
	p.set("reasoning_effort", effort)
	prediction, err := prediction(r.Prediction)
	if err != nil {
		return err
	}
	p.set("prediction", prediction)
	p.set("prompt_cache_key", r.PromptCacheKey)
	p.set("metadata", r.Metadata)
	return nil
}

// choice writes which tools the model may or must call.
func (p *params) choice(r *chat.Request) {
	if len(r.Tools) > 0 && r.ParallelToolCalls != chat.Unset {
		on := json.Value("false")
		if r.ParallelToolCalls == chat.On {
			on = json.Value("true")
		}
		p.set("parallel_tool_calls", on)
	}
	if len(r.Tools) == 0 && r.Choice.Mode < chat.ToolsRequired {
		return
	}
	switch r.Choice.Mode {
	case chat.ToolsAuto:
		p.set("tool_choice", json.Value(`"auto"`))
	case chat.ToolsNone:
		p.set("tool_choice", json.Value(`"none"`))
	case chat.ToolsRequired:
		p.set("tool_choice", json.Value(`"any"`))
	case chat.ToolsNamed:
		v := append([]byte(`{"type":"function","function":{"name":`), r.Choice.Name...)
		p.set("tool_choice", append(v, "}}"...))
	}
}

func (p *params) format(f *chat.Format) {
	switch f.Kind {
	case chat.ObjectFormat:
		p.set("response_format", json.Value(`{"type":"json_object"}`))
	case chat.SchemaFormat:
		v := json.AppendMember([]byte(`{"type":"json_schema","json_schema":{`), "name", f.Name)
		v = json.AppendMember(v, "description", f.Description)
		schema := f.Schema
		if schema == nil {
			schema = json.Value("{}")
		}
		v = json.AppendMember(v, "schema", schema)
		if f.Strict {
			v = json.AppendBool(v, "strict", true)
		}
		p.set("response_format", append(v, "}}"...))
	}
}

// prediction is the expected answer, for which the provider takes one text.
func prediction(v json.Value) (json.Value, error) {
	if v == nil {
		return nil, nil
	}
	text := v.Get("content")
	if text.IsArray() {
		n := 0
		var only json.Value
		for part := range text.Items() {
			n++
			only = part.Get("text")
		}
		if n != 1 {
			return nil, interlock.Unsupported("prediction.content", "this model's provider takes one text")
		}
		text = only
	}
	if !text.IsString() {
		return nil, interlock.BadParam("prediction.content", "must be a string or an array of one text")
	}
	return append(append([]byte(`{"type":"content","content":`), text...), '}'), nil
}
