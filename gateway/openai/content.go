package openai

import "github.com/interlock-gateway/interlock/gateway/openai/jsonx"

// messages walks the messages of a chat.
func (s *scan) messages() *Error {
	if s.r.Endpoint != ChatCompletions {
		s.json.Skip()
		return nil
	}
	if s.json.Peek() != jsonx.Array {
		return s.unless("messages", "messages must be an array")
	}
	s.json.Enter()
	n := 0
	for ; s.json.Item(); n++ {
		s.message()
	}
	if n == 0 && s.json.OK() {
		return invalid("messages", "messages is empty: send at least one message")
	}
	return nil
}

// input walks the member that the endpoint takes its input from: text, tokens, or an array of
// them, of messages, of parts.
func (s *scan) input(name string) *Error {
	switch s.json.Peek() {
	case jsonx.Null:
		s.json.Skip()
	case jsonx.String, jsonx.Array:
		s.items()
	default:
		return s.unless(name, name+" must be text or an array")
	}
	return nil
}

// items walks text, a token, an item, or an array of them.
func (s *scan) items() {
	switch s.json.Peek() {
	case jsonx.String:
		s.text()
	case jsonx.Number:
		s.tokens++
		s.json.Skip()
	case jsonx.Object:
		s.item()
	case jsonx.Array:
		s.json.Enter()
		for s.json.Item() {
			s.items()
		}
	default:
		s.json.Skip()
	}
}

// privateMember carries, on an assistant's message, what one provider sealed for itself: the
// adapters put it there. A provider of another kind is not shown it.
const privateMember = "provider_data"

// message walks a message, and notes what of it is private.
func (s *scan) message() {
	if s.json.Peek() != jsonx.Object {
		s.json.Skip()
		return
	}
	s.json.Enter()
	behind, cut, kept := 0, -1, false // behind the member before; where members cut in front begin
	for {
		key, at, ok := s.json.Key()
		if !ok {
			if cut >= 0 {
				s.r.private = append(s.r.private, Span{cut, behind})
			}
			return
		}
		if string(key) != privateMember {
			if cut >= 0 {
				s.r.private, cut = append(s.r.private, Span{cut, at}), -1 // with the comma behind it
			}
			s.itemMember(key)
			kept, behind = true, s.json.Pos()
			continue
		}
		_, to := s.json.Skip()
		switch {
		case kept:
			s.r.private = append(s.r.private, Span{behind, to})
		case cut < 0:
			cut = at
		}
		behind = to
	}
}

// item walks an item of a responses input, or a part of a content.
func (s *scan) item() {
	if s.json.Peek() != jsonx.Object {
		s.json.Skip()
		return
	}
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			return
		}
		s.itemMember(key)
	}
}

func (s *scan) itemMember(key []byte) {
	switch string(key) {
	case "content", "output", "text", "arguments", "refusal", "summary":
		s.content()
	case "type":
		s.partType()
	case "tool_calls":
		from, to := s.json.Skip()
		s.textBytes += int64(to - from)
	default:
		s.json.Skip()
	}
}

// content walks text or an array of parts.
func (s *scan) content() {
	switch s.json.Peek() {
	case jsonx.String:
		s.text()
	case jsonx.Array:
		s.json.Enter()
		for s.json.Item() {
			if s.json.Peek() == jsonx.String {
				s.text()
				continue
			}
			s.item()
		}
	default:
		s.json.Skip()
	}
}

func (s *scan) text() {
	raw, _ := s.json.Str()
	s.textBytes += int64(len(raw))
	if len(raw) > 0 {
		s.r.Modalities |= Text
	}
}

// partType reads the type of a part, whose values are those of chat and responses alike.
func (s *scan) partType() {
	raw, _, ok := s.json.StrOrSkip()
	if !ok {
		return
	}
	switch string(raw) {
	case "image_url", "input_image", "image":
		s.r.Modalities |= Image
	case "input_audio", "audio_url", "audio":
		s.r.Modalities |= Audio
	case "file", "input_file", "document_url":
		s.r.Modalities |= File
	}
}

// modalities reads what a chat's answer is to be made of: ["text", "audio"].
func (s *scan) modalities() {
	if s.json.Peek() != jsonx.Array {
		s.json.Skip()
		return
	}
	s.json.Enter()
	for s.json.Item() {
		raw, _, _ := s.json.StrOrSkip()
		switch string(raw) {
		case "audio":
			s.r.Modalities |= Audio
		case "image":
			s.r.Modalities |= Image
		}
	}
}

// responseFormat reads a chat's {"type": "json_schema", "json_schema": {"schema", "strict"}}.
func (s *scan) responseFormat() {
	if s.json.Peek() != jsonx.Object {
		s.json.Skip()
		return
	}
	var f format
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "type":
			f.kind, _, _ = s.json.StrOrSkip()
		case "json_schema":
			if s.json.Peek() == jsonx.Object {
				s.format(&f, false)
			} else {
				s.json.Skip()
			}
		default:
			s.json.Skip()
		}
	}
	f.into(s.r)
}

// textConfig reads a response's {"format": {"type": "json_schema", "schema", "strict"}}.
func (s *scan) textConfig() {
	if s.json.Peek() != jsonx.Object {
		s.json.Skip()
		return
	}
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			return
		}
		if string(key) != "format" || s.json.Peek() != jsonx.Object {
			s.json.Skip()
			continue
		}
		var f format
		s.format(&f, true)
		f.into(s.r)
	}
}

type format struct {
	kind   []byte
	schema Span
	strict bool
}

func (s *scan) format(f *format, typed bool) {
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "schema":
			f.schema = s.span()
		case "strict":
			f.strict = s.json.TrueOrSkip()
		case "type":
			raw, _, _ := s.json.StrOrSkip()
			if typed {
				f.kind = raw
			}
		default:
			s.json.Skip()
		}
	}
}

func (f *format) into(r *Request) {
	switch string(f.kind) {
	case "json_object":
		r.Structure = JSONObject
	case "json_schema":
		r.Structure, r.Schema, r.StrictSchema = JSONSchema, f.schema, f.strict
	}
}
