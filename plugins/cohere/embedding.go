package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/embedding"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// embed makes a request for embeddings. The state is how many vectors have to come back.
func embed(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	r, err := embedding.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("dimensions", name); err != nil {
		return err
	}
	ext, err := readExtension(r.Other(name), &settings{})
	if err != nil {
		return err
	}
	if ext.documents != nil {
		return interlock.Unsupported(name+".documents", "is a chat's")
	}
	out.Path = "/v2/embed"
	w := interlock.Writer(out.State)
	w.U32(uint32(len(r.Input)))
	out.State = w

	b := json.AppendText(append(out.Body, '{'), "model", c.Model)
	b = append(json.AppendKey(b, "texts"), '[')
	for _, text := range r.Input {
		b = append(json.AppendComma(b), text...)
	}
	p := params{b: append(b, `],"embedding_types":["float"]`...), ext: &ext}
	p.set("input_type", s.inputType)
	p.set("output_dimension", r.Dimensions)
	out.Body = append(ext.append(p.b), '}')
	return nil
}

func embedded(c *interlock.Call, root json.Value, dst []byte) ([]byte, error) {
	var vectors, billed json.Value
	for key, v := range root.Members() {
		switch string(key) {
		case "embeddings":
			vectors = v.Get("float")
		case "meta":
			billed = v.Get("billed_units")
		case "message":
			if v.IsString() {
				f := read(root, 0)
				return nil, &f
			}
		}
	}
	var o embedding.Out
	ok := true
	for v := range vectors.Items() {
		ok = ok && o.Vector(v)
	}
	r := interlock.NewReader(c.State)
	want := int(r.U32())
	if !ok || o.Count() == 0 || r.OK() && o.Count() != want {
		return nil, interlock.Malformed("the answer has not the vectors that were asked for")
	}
	tokens, _ := billed.Get("input_tokens").Uint()
	return o.AppendBody(c, dst, tokens), nil
}
