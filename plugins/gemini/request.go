package gemini

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

	w := writer{b: raw(out.Body, `{"contents":[`), s: s, model: c.Model}
	if err := w.messages(r.Messages); err != nil {
		return err
	}
	b := char(w.b, ']')
	if len(w.system) > 0 {
		b = join(raw(json.AppendKey(b, "systemInstruction"), `{"parts":[`), w.system)
		b = raw(b, "]}")
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
	out.Body = char(ext.appendRest(b), '}')
	return nil
}

// numbers are the members of generationConfig that are numbers of the caller's.
var numbers = [...]string{"maxOutputTokens", "temperature", "topP", "presencePenalty", "frequencyPenalty", "seed"}

// appendGeneration appends generationConfig, if there is something to say in it. A member that
// the caller's extension has is the caller's.
func appendGeneration(b []byte, c *interlock.Call, s *settings, r *chat.Request, ext *extension) ([]byte, error) {
	before := len(b)
	b = object(b, "generationConfig")
	empty := len(b)
	set := func(key string, v json.Value) {
		if ext.generation.Get(key).IsNull() {
			b = json.AppendMember(b, key, v)
		}
	}
	values := [...]json.Value{r.MaxTokens, r.Temperature, r.TopP, r.PresencePenalty, r.FrequencyPenalty, r.Seed}
	for i, v := range values {
		set(numbers[i], v)
	}
	if r.N > 1 {
		set("candidateCount", strconv.AppendInt(nil, int64(r.N), 10))
	}
	if len(r.Stop) > 0 {
		list := []byte{'['}
		for _, stop := range r.Stop {
			list = join(next(list), stop)
		}
		set("stopSequences", char(list, ']'))
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
	return char(b, '}'), nil
}

// appendTier asks for a tier of service: the Gemini API reads it in the body, Vertex AI in a
// header.
func appendTier(b []byte, s *settings, r *chat.Request, out *interlock.Request) ([]byte, error) {
	tier := r.ServiceTier.String()
	switch tier {
	case "", "auto", "default":
	case "flex", "priority":
		if s.parent != "" {
			out.Set("x-vertex-ai-llm-shared-request-type", tier)
		} else {
			b = json.AppendText(b, "serviceTier", tier)
		}
	default:
		return nil, unsupported("service_tier", "this model's provider has auto, default, flex and priority")
	}
	return b, nil
}
