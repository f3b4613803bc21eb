package bedrock

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
	if err := supports(c, r); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name), s)
	if err != nil {
		return err
	}
	p := planTools(r, s, &ext)
	out.Path = path(c.Model, c.Stream)
	if c.Stream {
		out.Framing = interlock.AWSEventStream
	}
	b := append(out.Body, '{')
	if b, err = appendMessages(b, c, r, &p, &ext); err != nil {
		return err
	}
	limit := r.MaxTokens
	if limit == nil {
		limit = s.maxTokens
	}
	b = appendInference(b, r, limit, ext.inference)
	b = appendToolConfig(b, r, &p, &ext)
	if r.Format.Kind == chat.SchemaFormat && p.answer == "" && !p.mustCall {
		b = appendOutputConfig(b, &r.Format, &ext)
	}
	if b, err = appendAdditional(b, c, s, r, &p, &ext, limit); err != nil {
		return err
	}
	if s.guardrail != nil {
		b = appendGuardrail(b, s.guardrail, c.Stream)
	}
	if tier := serviceTier(r); tier != "" && ext.rest.Get("serviceTier") == nil {
		b = append(append(append(json.AppendKey(b, "serviceTier"), `{"type":"`...), tier...), `"}`...)
	}
	out.Body = append(ext.appendRest(b), '}')
	if p.answer != "" {
		out.State = newState(out.State, p.answer)
	}
	return nil
}

func supports(c *interlock.Call, r *chat.Request) error {
	if err := r.Supports("tools", "tool_choice", "parallel_tool_calls", "response_format", "max_tokens", "stop",
		"temperature", "top_p", "reasoning_effort", "service_tier", name); err != nil {
		return err
	}
	if tier := r.ServiceTier; tier != nil && serviceTier(r) == "" && r.Refuse("service_tier") != nil {
		return interlock.Unsupported("service_tier", "must be auto, default, flex or priority for this model's provider")
	}
	if r.ParallelToolCalls == chat.Off && len(r.Tools) > 0 {
		if version, ok := claude(c.Model); !ok || version < 405 {
			return interlock.Unsupported("parallel_tool_calls", "")
		}
	}
	return nil
}

func serviceTier(r *chat.Request) string {
	switch {
	case r.ServiceTier.Is("flex"):
		return "flex"
	case r.ServiceTier.Is("priority"):
		return "priority"
	}
	return ""
}

func appendInference(b []byte, r *chat.Request, limit, own json.Value) []byte {
	b = append(json.AppendKey(b, "inferenceConfig"), '{')
	set := func(key string, v json.Value) {
		if own.Get(key) == nil {
			b = json.AppendMember(b, key, v)
		}
	}
	set("maxTokens", limit)
	set("temperature", r.Temperature)
	set("topP", r.TopP)
	if len(r.Stop) > 0 {
		list := []byte{'['}
		for _, stop := range r.Stop {
			list = append(json.AppendComma(list), stop...)
		}
		set("stopSequences", append(list, ']'))
	}
	return append(appendMembers(b, own), '}')
}

// appendOutputConfig asks for an answer of that schema by the provider's own means.
func appendOutputConfig(b []byte, f *chat.Format, ext *extension) []byte {
	if ext.rest.Get("outputConfig") != nil {
		return b
	}
	b = append(json.AppendKey(b, "outputConfig"), `{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{`...)
	b = json.AppendMember(b, "name", f.Name)
	b = json.AppendMember(b, "description", description(f.Description))
	schema := f.Schema
	if schema == nil {
		schema = json.Value(anyObject)
	}
	b = json.AppendQuoteRaw(json.AppendKey(b, "schema"), schema)
	return append(b, "}}}}"...)
}

// description is nil for an empty one, which the provider refuses.
func description(v json.Value) json.Value {
	if v.Empty() {
		return nil
	}
	return v
}

// appendAdditional writes additionalModelRequestFields: what the model's vendor calls something
// that Converse has no word for.
func appendAdditional(b []byte, c *interlock.Call, s *settings, r *chat.Request, p *plan, ext *extension, limit json.Value) ([]byte, error) {
	fields, err := appendReasoning([]byte{'{'}, c, s, r, ext.additional, limit)
	if err != nil {
		return nil, err
	}
	if r.ParallelToolCalls == chat.Off && p.tools && ext.additional.Get("tool_choice") == nil {
		fields = append(json.AppendKey(fields, "tool_choice"), '{')
		if !p.forced() && ext.toolChoice == nil {
			fields = json.AppendText(fields, "type", "auto")
		}
		fields = append(json.AppendBool(fields, "disable_parallel_tool_use", true), '}')
	}
	fields = append(appendMembers(fields, ext.additional), '}')
	if len(fields) == 2 {
		return b, nil
	}
	return append(json.AppendKey(b, "additionalModelRequestFields"), fields...), nil
}

// appendGuardrail writes the operator's guardrail. How a stream is checked may be said for a
// stream only.
func appendGuardrail(b []byte, guardrail json.Value, stream bool) []byte {
	b = append(json.AppendKey(b, "guardrailConfig"), '{')
	for key, v := range guardrail.Members() {
		if stream || string(key) != "streamProcessingMode" {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	return append(b, '}')
}
