package anthropic

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
	if err := supports(r); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name))
	if err != nil {
		return err
	}
	p := planTools(r, s, &ext)
	t, err := think(c, s, r, &ext, p.forced() && !ext.choice)
	if err != nil {
		return err
	}
	out.Path = "/v1/messages"
	out.Set("anthropic-version", s.version)
	if s.beta != "" {
		out.Set("anthropic-beta", s.beta)
	}
	b := json.AppendText(append(out.Body, '{'), "model", c.Model)
	if c.Stream {
		out.Framing = interlock.SSE
		b = json.AppendBool(b, "stream", true)
	}
	if b, err = appendMessages(b, r, &ext); err != nil {
		return err
	}
	b = appendSampling(b, r, &ext, &t)
	b = p.append(b, r, s, &ext)
	var format json.Value
	if p.native {
		format = nativeFormat(r.Format.Schema)
	}
	b = ext.appendOutput(b, t.effort, format)
	if user := userID(r); user != nil && !ext.has("metadata") {
		b = json.AppendMember(append(json.AppendKey(b, "metadata"), '{'), "user_id", user)
		b = append(b, '}')
	}
	out.Body = append(ext.appendRest(b), '}')
	if p.answer != "" {
		out.State = newState(out.State, p.answer)
	}
	return nil
}

func supports(r *chat.Request) error {
	if err := r.Supports("tools", "tool_choice", "parallel_tool_calls", "response_format", "max_tokens", "stop",
		"temperature", "top_p", "reasoning_effort", name); err != nil {
		return err
	}
	if f, _ := r.Temperature.Float(); f > 1 {
		return interlock.Unsupported("temperature", "must be at most 1 for this model's provider")
	}
	for _, stop := range r.Stop {
		if blank(stop) {
			return interlock.Unsupported("stop", "this model's provider takes no stop sequence of blanks only")
		}
	}
	return nil
}

func appendSampling(b []byte, r *chat.Request, ext *extension, t *thought) []byte {
	set := func(key string, v json.Value) {
		if v != nil && !ext.has(key) {
			b = json.AppendMember(b, key, v)
		}
	}
	if r.MaxTokens != nil {
		b = json.AppendMember(b, "max_tokens", r.MaxTokens)
	} else {
		b = json.AppendUint(b, "max_tokens", t.limit)
	}
	set("temperature", r.Temperature)
	set("top_p", r.TopP)
	set("thinking", t.thinking)
	if len(r.Stop) > 0 {
		list := []byte{'['}
		for _, stop := range r.Stop {
			list = append(json.AppendComma(list), stop...)
		}
		set("stop_sequences", append(list, ']'))
	}
	return b
}

// userID is what the caller calls its own user, if the provider may have it: it wants something
// opaque, and refuses addresses.
func userID(r *chat.Request) json.Value {
	id := r.SafetyIdentifier
	if id.Empty() {
		id = r.User
	}
	if !isToken(string(id.Text()), 256) {
		return nil
	}
	return id
}

// blank says whether a string has no character but blanks: the provider refuses such a text.
func blank(text json.Value) bool {
	raw := text.Contents()
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case ' ':
		case '\\':
			if i++; i >= len(raw) || raw[i] != 'n' && raw[i] != 't' && raw[i] != 'r' {
				return false
			}
		default:
			return false
		}
	}
	return true
}
