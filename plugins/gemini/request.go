package gemini

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
	if err := r.Supports("tools", "tool_choice", "response_format", "n", "max_tokens", "stop", "temperature",
		"top_p", "presence_penalty", "frequency_penalty", "seed", "reasoning_effort", "service_tier", name); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name))
	if err != nil {
		return err
	}
	method := "generateContent"
	if c.Stream {
		method = "streamGenerateContent?alt=sse"
	}
	out.Path = string(appendPath(nil, s, c.Model, method))

	w := writer{b: append(out.Body, `{"contents":[`...), s: s, model: c.Model}
	if err := w.messages(r.Messages); err != nil {
		return err
	}
	b := append(w.b, ']')
	if len(w.system) > 0 {
		b = append(append(json.AppendKey(b, "systemInstruction"), `{"parts":[`...), w.system...)
		b = append(b, "]}"...)
	}
	if b, err = appendTools(b, s, r, &ext); err != nil {
		return err
	}
	b = appendToolConfig(b, r, &ext)
	safety := ext.safety
	if safety == nil {
		safety = s.safety
	}
	b = json.AppendMember(b, "safetySettings", safety)
	if b, err = appendGeneration(b, c, s, r, &ext); err != nil {
		return err
	}
	if b, err = appendTier(b, s, r, out); err != nil {
		return err
	}
	out.Body = append(ext.appendRest(b), '}')
	return nil
}

// appendGeneration appends generationConfig, if there is something to say in it. A member that
// the caller's extension has is the caller's.
func appendGeneration(b []byte, c *interlock.Call, s *settings, r *chat.Request, ext *extension) ([]byte, error) {
	before := len(b)
	b = append(json.AppendKey(b, "generationConfig"), '{')
	empty := len(b)
	set := func(key string, v json.Value) {
		if ext.generation.Get(key).IsNull() {
			b = json.AppendMember(b, key, v)
		}
	}
	set("maxOutputTokens", r.MaxTokens)
	set("temperature", r.Temperature)
	set("topP", r.TopP)
	set("presencePenalty", r.PresencePenalty)
	set("frequencyPenalty", r.FrequencyPenalty)
	set("seed", r.Seed)
	if r.N > 1 {
		n := json.AppendUint([]byte{'{'}, "n", uint64(r.N))
		set("candidateCount", n[len(`{"n":`):])
	}
	if len(r.Stop) > 0 {
		list := []byte{'['}
		for _, stop := range r.Stop {
			list = append(json.AppendComma(list), stop...)
		}
		set("stopSequences", append(list, ']'))
	}
	if r.Format.Kind != chat.TextFormat {
		set("responseMimeType", json.Value(`"application/json"`))
	}
	if r.Format.Schema != nil {
		key, schema, err := "responseJsonSchema", r.Format.Schema, error(nil)
		if s.openapi {
			key = "responseSchema"
			if schema, err = openAPI(schema, "response_format.json_schema.schema"); err != nil {
				return nil, err
			}
		}
		set(key, schema)
	}
	think, err := thinking(s, c.Model, r)
	if err != nil {
		return nil, err
	}
	set("thinkingConfig", think)
	b = appendMembers(b, ext.generation, "")
	if len(b) == empty {
		return b[:before], nil
	}
	return append(b, '}'), nil
}

// appendTier asks for a tier of service: the Gemini API reads it in the body, Vertex AI in a
// header.
func appendTier(b []byte, s *settings, r *chat.Request, out *interlock.Request) ([]byte, error) {
	tier := r.ServiceTier
	switch {
	case tier == nil, tier.Is("auto"), tier.Is("default"):
	case !tier.Is("flex") && !tier.Is("priority"):
		return nil, interlock.Unsupported("service_tier", "this model's provider has auto, default, flex and priority")
	case s.parent != "":
		out.Set("x-vertex-ai-llm-shared-request-type", tier.String())
	default:
		b = json.AppendMember(b, "serviceTier", tier)
	}
	return b, nil
}
