package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/embedding"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// embed makes embedContent of one input and batchEmbedContents of several. The state is how many
// vectors have to come back.
func embed(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	r, err := embedding.Read(body)
	if err != nil {
		return err
	}
	if err := r.Supports("dimensions", name); err != nil {
		return err
	}
	ext := r.Other(name)
	if ext != nil && !ext.IsObject() {
		return interlock.BadParam(name, "must be an object")
	}
	for key := range ext.Members() {
		switch string(key) {
		case "content", "model", "requests":
			return interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		}
	}
	w := interlock.Writer(out.State)
	w.U32(uint32(len(r.Input)))
	out.State = w

	method := "embedContent"
	b := out.Body
	if len(r.Input) > 1 {
		if s.parent != "" {
			return interlock.Unsupported("input", "this model's provider embeds one input a request")
		}
		method = "batchEmbedContents"
		b = append(b, `{"requests":[`...)
	}
	model := json.AppendQuote(nil, resource(c.Model))
	for _, text := range r.Input {
		b = append(separate(b, len(r.Input) > 1), '{')
		if s.parent == "" {
			b = json.AppendMember(b, "model", model)
		}
		b = append(json.AppendKey(b, "content"), `{"parts":[{"text":`...)
		b = append(append(b, text...), "}]}"...)
		if ext.Get("outputDimensionality") == nil {
			b = json.AppendMember(b, "outputDimensionality", r.Dimensions)
		}
		b = append(appendMembers(b, ext, ""), '}')
	}
	if len(r.Input) > 1 {
		b = append(b, "]}"...)
	}
	out.Path = string(appendPath(nil, s, c.Model, method))
	out.Body = b
	return nil
}

// separate puts a comma between the items of a list, where it is one.
func separate(b []byte, list bool) []byte {
	if list {
		return json.AppendComma(b)
	}
	return b
}

func embedded(c *interlock.Call, root json.Value, dst []byte) ([]byte, error) {
	var o embedding.Out
	tokens := uint64(0)
	ok := true
	for key, v := range root.Members() {
		switch string(key) {
		case "embedding":
			ok = ok && o.Vector(v.Get("values"))
		case "embeddings":
			for e := range v.Items() {
				ok = ok && o.Vector(e.Get("values"))
			}
		case "usageMetadata":
			tokens, _ = v.Get("promptTokenCount").Uint()
		}
	}
	r := interlock.NewReader(c.State)
	want := int(r.U32())
	if !ok || o.Count() == 0 || r.OK() && o.Count() != want {
		return nil, interlock.Malformed("the answer has not the vectors that were asked for")
	}
	return o.AppendBody(c, dst, tokens), nil
}
