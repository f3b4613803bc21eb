package chat

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// AppendState appends what the next Events has to know, to be the first part of the adapter's
// state. Of an Out that was never used it is an empty part: a zero Out begins the state that
// Request leaves.
func (o *Out) AppendState(dst []byte) []byte {
	w := interlock.Writer(dst)
	w.U32(0)
	from := len(w)
	used := o.used()
	if used > 0 {
		o.Begin(nil, 0)
	}
	if o.begun {
		w.Bool(o.counted)
		w.U64(o.created)
		w.Bytes(o.id)
		w.U32(uint32(used))
		for i := range used {
			o.choice(i).write(&w)
		}
	}
	n := interlock.Writer(w[:from-4])
	n.U32(uint32(len(w) - from))
	return w
}

// used is one more than the index of the last choice of which anything is known.
func (o *Out) used() int {
	n := o.each()
	for ; n > 0; n-- {
		c := o.choice(n - 1)
		if c.seen || c.reason != 0 || c.calls > 0 || len(c.opaque) > 0 {
			break
		}
	}
	return n
}

const (
	bitSeen = 1 << iota
	bitText
	bitSpoke
	bitOpen
	bitFilled
)

func bit(on bool, b uint32) uint32 {
	if on {
		return b
	}
	return 0
}

func (c *choice) write(w *interlock.Writer) {
	w.U32(bit(c.seen, bitSeen) | bit(c.text, bitText) | bit(c.spoke, bitSpoke) |
		bit(c.open, bitOpen) | bit(c.filled, bitFilled) | uint32(c.reason)<<8)
	w.U32(c.calls)
	w.Bytes(c.opaque)
}

func (c *choice) read(r *interlock.Reader) {
	flags := r.U32()
	c.seen, c.text, c.spoke = flags&bitSeen != 0, flags&bitText != 0, flags&bitSpoke != 0
	c.open, c.filled = flags&bitOpen != 0, flags&bitFilled != 0
	if c.reason = Reason(flags >> 8); c.reason.String() == "" {
		c.reason = 0
	}
	c.calls = r.U32()
	c.open = c.open && c.calls > 0
	c.opaque = r.Bytes()
}

// LoadState takes over what AppendState left, which must hold as long as the Out, and returns a Reader of the adapter's own part.
// Where state holds neither, the Reader's OK is false.
func (o *Out) LoadState(state []byte) interlock.Reader {
	r := interlock.NewReader(state)
	s := interlock.NewReader(r.Bytes())
	if s.Len() == 0 {
		return r
	}
	o.begun = true
	o.counted = s.Bool()
	o.created = s.U64()
	o.id = s.Bytes()
	for i := range min(s.Count(12), maxChoices) {
		o.choice(i).read(&s)
	}
	return r
}
