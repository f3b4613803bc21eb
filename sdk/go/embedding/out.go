package embedding

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Out makes the answer to an embeddings request. The zero value is ready for use.
type Out struct {
	data  []byte // the items of the list
	count int
}

// Vector adds the embedding of the next input: an array of numbers. ok is false, and nothing is
// added, when it is something else.
func (o *Out) Vector(v json.Value) (ok bool) {
	if !v.IsArray() {
		return false
	}
	for n := range v.Items() {
		if !n.IsNumber() {
			return false
		}
	}
	o.data = append(json.AppendComma(o.data), `{"object":"embedding","index":`...)
	o.data = strconv.AppendInt(o.data, int64(o.count), 10)
	o.data = append(o.data, `,"embedding":`...)
	o.data = append(json.Compact(o.data, v), '}')
	o.count++
	return true
}

// Count is how many vectors there are.
func (o *Out) Count() int { return o.count }

// AppendBody appends the answer. tokens is what the input took.
func (o *Out) AppendBody(c *interlock.Call, dst []byte, tokens uint64) []byte {
	dst = append(append(append(dst, `{"object":"list","data":[`...), o.data...), `],"model":`...)
	dst = json.AppendQuote(dst, c.Model)
	dst = append(dst, `,"usage":{"prompt_tokens":`...)
	dst = strconv.AppendUint(dst, tokens, 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendUint(dst, tokens, 10)
	return append(dst, "}}"...)
}
