package wasm

import "strings"

const (
	outputHead = 1 << 10
	outputTail = 3 << 10 // a panic comes last
)

// output is what a guest wrote in one call: its beginning and its end.
type output struct {
	head, tail []byte
	cut        bool
}

func (o *output) reset() { o.head, o.tail, o.cut = o.head[:0], o.tail[:0], false }

func (o *output) write(b []byte) {
	n := min(len(b), outputHead-len(o.head))
	o.head = append(o.head, b[:n]...)
	if b = b[n:]; len(b) > outputTail {
		b, o.cut = b[len(b)-outputTail:], true
	}
	if over := len(o.tail) + len(b) - outputTail; over > 0 {
		o.tail, o.cut = append(o.tail[:0], o.tail[over:]...), true
	}
	o.tail = append(o.tail, b...)
}

func (o *output) text() string {
	s := string(o.head)
	if o.cut {
		s += "\n…\n"
	}
	return strings.TrimSpace(clean(s+string(o.tail), maxMessage+16))
}
