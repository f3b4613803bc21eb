package azure

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// stream is what is known of a streamed chat completion from event to event.
type stream struct {
	out *interlock.Events

	begun  bool   // a chunk with a choice has gone out
	head   []byte // members of it: id, object, created, model
	filter []byte // prompt_filter_results that wait for it, an array
	bare   []call // calls whose arguments have not come
}

// call is where a call of a tool stands.
type call struct{ choice, index uint32 }

const (
	maxHead   = 4 << 10
	maxFilter = 32 << 10 // of prompt_filter_results that are kept
	maxBare   = 1 << 10  // calls without arguments
)

// load takes over what append left; false where it is something else.
func (s *stream) load(state []byte) bool {
	if len(state) == 0 {
		return true
	}
	r := interlock.NewReader(state)
	s.begun = r.Bool()
	s.head = r.Bytes()
	s.filter = r.Bytes()
	for n := r.Count(8); n > 0; n-- {
		s.bare = append(s.bare, call{r.U32(), r.U32()})
	}
	return r.OK() && len(s.head) <= maxHead && len(s.filter) <= maxFilter && len(s.bare) <= maxBare &&
		(len(s.filter) == 0 || json.Valid(s.filter)) && (len(s.head) == 0 || json.Valid(wrap(s.head)))
}

func (s *stream) append(state []byte) []byte {
	w := interlock.Writer(state)
	w.Bool(s.begun)
	w.Bytes(s.head)
	w.Bytes(s.filter)
	w.U32(uint32(len(s.bare)))
	for _, k := range s.bare {
		w.U32(k.choice)
		w.U32(k.index)
	}
	return w
}

// wrap makes an object of members.
func wrap(members []byte) []byte {
	return append(append([]byte{'{'}, members...), '}')
}

// chunk takes a chunk of a chat completion. Most pass as they are. Where Azure differs from what
// SDKs expect it is put right:
//
//   - The chunk with the filter's results for the prompt has neither a choice nor an ID. The
//     results go along with the first that has.
//   - With the asynchronous filter, results come in chunks without ID and model, in choices
//     without a delta: they get those of the answer, and an empty delta.
//   - A call that ends without arguments gets `{}`.
func (s *stream) chunk(v json.Value) error {
	var id, choices, usage, filter json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "id":
			id = v
		case "choices":
			choices = v
		case "usage":
			usage = v
		case "prompt_filter_results":
			filter = v
		case "error":
			if !v.IsNull() {
				f := readError(v)
				if v.IsString() {
					f.Message = v.String()
				}
				return &f
			}
		}
	}
	if choices.Empty() {
		if usage.IsObject() {
			s.emit("", v)
		} else if filter.IsArray() && !s.begun && len(filter) <= maxFilter {
			s.filter = json.Compact(nil, filter)
		}
		return nil
	}
	lacking, filled := s.look(choices)
	nameless := id.Empty() && len(s.head) > 0
	if id.Empty() && lacking && len(s.head) == 0 {
		return nil // an annotation of an answer that has not begun
	}
	if !s.begun {
		s.begun = true
		s.name(v)
	}
	ended := len(s.bare) > 0 && ends(choices)
	if !lacking && !filled && !nameless && !ended && len(s.filter) == 0 {
		s.emit("", v)
		return nil
	}
	if ended {
		s.fill(choices)
	}
	b := append(s.out.Open(""), '{')
	if nameless {
		b = append(b, s.head...)
	}
	for key, v := range v.Members() {
		switch string(key) {
		case "id", "object", "created", "model":
			if nameless {
				continue
			}
		case "choices":
			b = appendChoices(append(json.AppendComma(b), `"choices":`...), v, filled)
			continue
		case "prompt_filter_results":
			if len(s.filter) > 0 {
				continue
			}
		}
		b = json.Compact(append(json.AppendQuote(json.AppendComma(b), key), ':'), v)
	}
	if len(s.filter) > 0 {
		b = append(json.AppendKey(b, "prompt_filter_results"), s.filter...)
		s.filter = nil
	}
	s.out.Close(append(b, '}'))
	return nil
}

// name keeps what the answer calls itself.
func (s *stream) name(v json.Value) {
	var head []byte
	for key, v := range v.Members() {
		switch string(key) {
		case "id", "object", "created", "model":
			head = json.Compact(append(json.AppendQuote(comma(head), key), ':'), v)
		}
	}
	if len(head) <= maxHead {
		s.head = head
	}
}

// comma appends one unless b is empty.
func comma(b []byte) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	return b
}

// look notes calls that begin and arguments that come. lacking: a choice has no delta; filled: one
// that ends has calls in it that have no arguments and never will.
func (s *stream) look(choices json.Value) (lacking, filled bool) {
	position := uint64(0)
	for choice := range choices.Items() {
		var delta, finish json.Value
		index := position
		position++
		for key, v := range choice.Members() {
			switch string(key) {
			case "index":
				if n, ok := v.Uint(); ok {
					index = n
				}
			case "delta":
				delta = v
			case "finish_reason":
				finish = v
			}
		}
		lacking = lacking || choice.IsObject() && delta.IsNull()
		ended := !finish.Empty()
		for piece := range delta.Get("tool_calls").Items() {
			n, ok := piece.Get("index").Uint()
			f := piece.Get("function")
			if !ok || !f.IsObject() || index > 1<<16 || n > 1<<16 {
				continue
			}
			at := call{uint32(index), uint32(n)}
			switch begins := !f.Get("name").Empty(); {
			case !f.Get("arguments").Empty():
				s.drop(at)
			case begins && ended:
				filled = true
			case begins && len(s.bare) < maxBare:
				s.drop(at)
				s.bare = append(s.bare, at)
			}
		}
	}
	return lacking, filled
}

func (s *stream) drop(at call) {
	for i := range s.bare {
		if s.bare[i] == at {
			s.bare = append(s.bare[:i], s.bare[i+1:]...)
			return
		}
	}
}

// ends says whether one of the choices ends.
func ends(choices json.Value) bool {
	for choice := range choices.Items() {
		if !choice.Get("finish_reason").Empty() {
			return true
		}
	}
	return false
}

// fill emits, before the chunk in which a choice ends, a chunk with `{}` for each of its calls that
// have no arguments.
func (s *stream) fill(choices json.Value) {
	position := uint64(0)
	for choice := range choices.Items() {
		index := position
		position++
		if n, ok := choice.Get("index").Uint(); ok {
			index = n
		}
		if choice.Get("finish_reason").Empty() {
			continue
		}
		for i := 0; i < len(s.bare); {
			k := s.bare[i]
			if uint64(k.choice) != index {
				i++
				continue
			}
			s.drop(k)
			b := append(append(s.out.Open(""), '{'), s.head...)
			b = append(json.AppendKey(b, "choices"), "[{"...)
			b = json.AppendUint(b, "index", index)
			b = append(json.AppendKey(b, "delta"), `{"tool_calls":[{`...)
			b = json.AppendUint(b, "index", uint64(k.index))
			s.out.Close(append(b, `,"function":{"arguments":"{}"}}]},"finish_reason":null}]}`...))
		}
	}
}

// appendChoices appends choices with a delta each, and with `{}` for the arguments of calls that
// begin and end in one chunk.
func appendChoices(b []byte, choices json.Value, filled bool) []byte {
	return each(b, choices, func(b []byte, choice json.Value) []byte {
		if !choice.IsObject() {
			return json.Compact(b, choice)
		}
		whole := filled && !choice.Get("finish_reason").Empty()
		lacking := true
		b = append(b, '{')
		for key, v := range choice.Members() {
			if string(key) == "delta" {
				if v.IsNull() {
					continue
				}
				lacking = false
				if whole {
					b = append(json.AppendQuote(json.AppendComma(b), key), ':')
					b = edit(b, compact(v), "tool_calls", appendFilled)
					continue
				}
			}
			b = json.Compact(append(json.AppendQuote(json.AppendComma(b), key), ':'), v)
		}
		if lacking {
			b = append(json.AppendKey(b, "delta"), "{}"...)
		}
		return append(b, '}')
	})
}

func compact(v json.Value) json.Value { return json.Compact(nil, v) }
