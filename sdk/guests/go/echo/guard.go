package echo

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// The guard refuses what holds the one word, unless the key may say it, and spells the other.
var (
	forbidden = []byte("forbidden")
	british   = []byte("colour")
	american  = []byte("color")
)

const (
	reason  = "forbidden_word"
	message = "that word is not said here"
)

func guardBody(_ *interlock.Call, s *interlock.Subject, body []byte, out *interlock.Verdict) error {
	switch {
	case s.Key != "root" && bytes.Contains(body, forbidden):
		out.Action, out.Reason, out.Message = interlock.Refuse, reason, message
	case bytes.Contains(body, british):
		out.Action = interlock.Use
		out.Body = respell(out.Body, body)
	}
	return nil
}

// guardEvents keeps the number of events in its state, to show that it can.
func guardEvents(c *interlock.Call, s *interlock.Subject, in []interlock.Frame, _ bool, out *interlock.EventsVerdict) error {
	r := interlock.NewReader(c.State)
	w := interlock.Writer(out.State[:0])
	w.U32(r.U32() + uint32(len(in)))
	out.State = w
	for i := range in {
		switch {
		case s.Key != "root" && bytes.Contains(in[i].Data, forbidden):
			out.Action, out.Reason, out.Message = interlock.Refuse, reason, message
			return nil
		case bytes.Contains(in[i].Data, british):
			out.Action = interlock.Use
		}
	}
	if out.Action == interlock.Use {
		for i := range in {
			out.Close(respell(out.Open(in[i].Name), in[i].Data))
		}
	}
	return nil
}

func respell(dst, text []byte) []byte {
	for {
		k := bytes.Index(text, british)
		if k < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:k]...), american...)
		text = text[k+len(british):]
	}
}
