package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/embedding"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// embed makes a request for embeddings. The state is how many vectors have to come back.
func embed(c *interlock.Call, body []byte, out *interlock.Request) error {
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
	if ext.has("encoding_format") {
		return interlock.Unsupported(name+".encoding_format", "is made of the request itself")
	}
	out.Path = "/v1/embeddings"
	w := interlock.Writer(out.State)
	w.U32(uint32(len(r.Input)))
	out.State = w

	b := json.AppendText(append(out.Body, '{'), "model", c.Model)
	b = append(json.AppendKey(b, "input"), '[')
	for _, text := range r.Input {
		b = append(json.AppendComma(b), text...)
	}
	p := params{b: append(b, ']'), ext: &ext}
	p.set("output_dimension", r.Dimensions)
	out.Body = append(ext.append(p.b), '}')
	return nil
}

func embedded(c *interlock.Call, root json.Value, dst []byte) ([]byte, error) {
	var o embedding.Out
	tokens := uint64(0)
	ok := true
	for key, v := range root.Members() {
		if isError(key, v) {
			f := read(root, 0)
			return nil, &f
		}
		switch string(key) {
		case "data":
			for item := range v.Items() {
				n, numbered := item.Get("index").Uint()
				ok = ok && (!numbered || n == uint64(o.Count())) && o.Vector(item.Get("embedding"))
			}
		case "usage":
			tokens, _ = v.Get("prompt_tokens").Uint()
		}
	}
	r := interlock.NewReader(c.State)
	want := int(r.U32())
	if !ok || o.Count() == 0 || r.OK() && o.Count() != want {
		return nil, interlock.Malformed("the answer has not the vectors that were asked for")
	}
	return o.AppendBody(c, dst, tokens), nil
}
