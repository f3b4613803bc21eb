package main

import (
	"fmt"
	"strings"
)

// kind is the shape of the requests of one load, and of their answers.
type kind struct {
	name   string
	model  string
	stream bool
	size   int    // of the body, in bytes; 0 = about 0.3 KB
	image  int    // an image of so many bytes in base64 stands in the prompt
	key    string // "" = the target's own
	want   want
}

// The loads. A stream's events are written one after another without a pause; a paced stream
// has 5 ms between them, so that each comes on its own.
var (
	post   = kind{name: "post", model: modelPlain}
	stream = kind{name: "stream", model: modelPlain, stream: true, want: want{Stream: true, Events: streamEvents}}
	paced  = kind{name: "paced", model: modelPaced, stream: true, want: want{Stream: true, Events: streamEvents}}
	eights = kind{name: "eights", model: modelEight, stream: true, want: want{Stream: true, Events: eightEvents}}
	slow   = kind{name: "slow", model: modelSlow, stream: true, want: want{Stream: true}}
)

// sizedIn asks with a body of n bytes; sizedOut for an answer whose text has n bytes.
func sizedIn(n int) kind { return kind{name: "in", model: modelPlain, size: n} }

func sizedOut(n int) kind {
	return kind{name: "out", model: fmt.Sprint(modelOut, n), want: want{Bytes: n}}
}

const question = "What does a proxy between a program and a language model cost, if it keeps a record of every attempt and never sends one twice?"

// body is the request's body.
func (k kind) body(model string) []byte {
	system := "You answer in one short paragraph and you do not make things up."
	content := `"` + question + `"`
	if k.image > 0 {
		content = `[{"type":"text","text":"` + question + `"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgoAAAAN", k.image/16) + `"}}]`
	}
	make := func(system string) string {
		return fmt.Sprintf(`{"model":"%s","stream":%t,"messages":[{"role":"system","content":"%s"},{"role":"user","content":%s}]}`, model, k.stream, system, content)
	}
	b := make(system)
	if more := k.size - len(b); more > 0 {
		b = make(system + strings.Repeat(" It is a long story, told again and again.", more/42+1)[:more])
	}
	return []byte(b)
}

// request is the bytes of a request of this kind to a target.
func (t *target) request(k kind) []byte {
	model := k.model
	if m, ok := t.models[k.model]; ok {
		model = m
	}
	body := k.body(model)
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", t.path, t.addr, len(body))
	if k.key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", k.key)
	} else {
		for name, v := range t.headers {
			fmt.Fprintf(&b, "%s: %s\r\n", name, v)
		}
	}
	b.WriteString("\r\n")
	return append([]byte(b.String()), body...)
}
