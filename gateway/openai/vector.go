package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// base64Vector renders an embedding, a list of numbers, as OpenAI's base64 form does: float32,
// little-endian. It is false for a list that holds something else.
func base64Vector(body []byte, at Span) ([]byte, bool) {
	var r jsonx.Reader
	r.ResetAt(body, at.From)
	floats := make([]byte, 0, (at.To-at.From)/3)
	r.Enter()
	for r.Item() {
		number := r.Peek() == jsonx.Number
		from, to := r.Skip()
		if !number {
			return nil, false
		}
		f, err := strconv.ParseFloat(string(body[from:to]), 32)
		if err != nil {
			return nil, false
		}
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(f)))
	}
	text := make([]byte, 0, base64.StdEncoding.EncodedLen(len(floats))+2)
	text = append(text, '"')
	text = base64.StdEncoding.AppendEncode(text, floats)
	return append(text, '"'), true
}
