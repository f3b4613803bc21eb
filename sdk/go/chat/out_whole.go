package chat

import (
	"strconv"

	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// AppendBody appends the whole answer, a chat.completion, that was gathered. Choices without a
// finish are left out; usage is there if Usage was called.
func (o *Out) AppendBody(dst []byte) []byte {
	dst = append(o.appendHead(dst, "chat.completion"), '[')
	for i := range o.each() {
		if c := o.choice(i); c.reason != 0 {
			dst = o.appendChoice(json.AppendComma(dst), c, i)
		}
	}
	dst = append(dst, ']')
	if o.counted {
		dst = o.usage.append(json.AppendKey(dst, "usage"))
	}
	return append(dst, '}')
}

func (o *Out) appendChoice(b []byte, c *choice, index int) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendUint(b, uint64(index), 10)
	b = append(b, `,"message":{"role":"assistant","content":`...)
	if c.text || !c.spoke {
		b = appendContents(b, c.content)
	} else {
		b = append(b, "null"...)
	}
	b = json.AppendKey(b, "refusal")
	if c.refused {
		b = appendContents(b, c.refusal)
	} else {
		b = append(b, "null"...)
	}
	if c.reasoned {
		b = appendContents(json.AppendKey(b, "reasoning_content"), c.reasoning)
	}
	if c.calls > 0 {
		b = append(json.AppendKey(b, "tool_calls"), '[')
		b = append(append(b, c.called...), ']')
	}
	if len(c.opaque) > 0 {
		b = append(json.AppendKey(b, "provider_data"), '[')
		b = append(append(b, c.opaque...), ']')
	}
	b = append(b, `},"logprobs":null,"finish_reason":"`...)
	return append(append(b, c.reason.String()...), `"}`...)
}

func appendContents(b, contents []byte) []byte {
	return append(append(append(b, '"'), contents...), '"')
}
