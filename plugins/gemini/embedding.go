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
		return badParam(name, "must be an object")
	}
	for key := range ext.Members() {
		switch string(key) {
		case "content", "model", "requests":
			return unsupported(name+"."+string(key), "is made of the request itself")
		}
	}
	w := interlock.Writer(out.State)
	writeU32(&w, uint32(len(r.Input)))
	out.State = w

	many := len(r.Input) > 1
	method, b := "embedContent", out.Body
	if many {
		if s.parent != "" {
			return unsupported("input", "this model's provider embeds one input a request")
		}
		method, b = "batchEmbedContents", raw(b, `{"requests":[`)
	}
	// What all of them have besides their text.
	common := []byte{'{'}
	if s.parent == "" {
		common = json.AppendText(common, "model", resource(c.Model))
	}
	if ext.Get("outputDimensionality") == nil {
		common = json.AppendMember(common, "outputDimensionality", r.Dimensions)
	}
	common = appendMembers(common, ext, "")
	for _, text := range r.Input {
		if many {
			b = next(b)
		}
		b = raw(json.AppendKey(join(b, common), "content"), `{"parts":[{"text":`)
		b = raw(join(b, text), "}]}}")
	}
	if many {
		b = raw(b, "]}")
	}
	out.Path = string(appendPath(nil, s, c.Model, method))
	out.Body = b
	return nil
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
		return nil, malformed("the answer has not the vectors that were asked for")
	}
	return o.AppendBody(c, dst, tokens), nil
}
