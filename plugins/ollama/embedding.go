package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/embedding"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func embed(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	r, err := embedding.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("dimensions", name); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name))
	if err != nil {
		return err
	}
	b := json.AppendText(append(out.Body, '{'), "model", c.Model)
	b = append(json.AppendKey(b, "input"), '[')
	for _, text := range r.Input {
		b = append(json.AppendComma(b), text...)
	}
	b = append(b, ']')
	if r.Dimensions != nil && !ext.has("dimensions") {
		b = json.AppendMember(b, "dimensions", r.Dimensions)
	}
	if s.keepAlive != nil && !ext.has("keep_alive") {
		b = json.AppendMember(b, "keep_alive", s.keepAlive)
	}
	if ext.options != nil {
		b = append(appendMembers(append(json.AppendKey(b, "options"), '{'), ext.options), '}')
	}
	out.Body = append(ext.appendRest(b), '}')
	out.Path = "/api/embed"
	return nil
}

// embedded makes the answer of {"embeddings": [[…]], "prompt_eval_count"}.
func embedded(c *interlock.Call, root json.Value, dst []byte) ([]byte, error) {
	if e := root.Get("error"); !e.IsNull() {
		f := inside(e)
		return nil, &f
	}
	var o embedding.Out
	for v := range root.Get("embeddings").Items() {
		if !o.Vector(v) {
			return nil, interlock.Malformed("an embedding is not a list of numbers")
		}
	}
	if o.Count() == 0 {
		return nil, interlock.Malformed("the answer has no embeddings")
	}
	tokens, _ := root.Get("prompt_eval_count").Uint()
	return o.AppendBody(c, dst, tokens), nil
}
