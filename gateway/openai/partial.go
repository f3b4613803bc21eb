package openai

import (
	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// AppendPartialEnd appends the events that end a stream after a failure, such that official SDKs
// raise it; the body must then end cleanly, and nothing follows, no [DONE] either. It serves a
// stream of which nothing but heartbeats has gone out, too; e says what happened.
//
// Chat completions and completions get one event with the error as AppendJSON writes it.
// Responses get the error event, flat and nested as OpenAI sends it, and response.failed with the
// response as far as it came: the items that were done, and those that were not with the text so
// far and status incomplete. Sequence numbers go on.
func (s *Stream) AppendPartialEnd(dst []byte, e *Error) []byte {
	s.finished = true
	if s.endpoint == Responses {
		dst = s.appendErrorEvent(dst, e)
		return s.appendFailedEvent(dst, e)
	}
	dst = append(dst, "data: "...)
	dst = e.AppendJSON(dst)
	return append(dst, "\n\n"...)
}

// appendErrorEvent appends the error event of a responses stream.
func (s *Stream) appendErrorEvent(dst []byte, e *Error) []byte {
	dst = append(dst, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":"...)
	dst = s.appendSequence(dst)
	dst = append(dst, `,"code":`...)
	dst = jsonx.AppendString(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = e.appendMessage(dst)
	dst = append(dst, `,"param":`...)
	dst = appendOrNull(dst, e.Param)
	dst = append(dst, `,"error":{"type":`...)
	dst = jsonx.AppendString(dst, e.Type)
	dst = append(dst, `,"code":`...)
	dst = jsonx.AppendString(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = e.appendMessage(dst)
	dst = append(dst, `,"param":`...)
	dst = appendOrNull(dst, e.Param)
	dst = e.appendInterlock(dst)
	return append(dst, "}}\n\n"...)
}

func (s *Stream) appendSequence(dst []byte) []byte {
	dst = appendInt(dst, s.sequence)
	s.sequence++
	return dst
}

// appendFailedEvent appends response.failed.
func (s *Stream) appendFailedEvent(dst []byte, e *Error) []byte {
	dst = append(dst, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":"...)
	dst = s.appendSequence(dst)
	dst = append(dst, `,"response":`...)
	from := len(dst)
	if len(s.response) > 0 {
		dst = s.appendFailedResponse(dst, e)
	} else {
		dst = s.appendOwnResponse(dst, e)
	}
	jsonx.Compact(dst, from)
	return append(dst, "}\n\n"...)
}

func appendResponseError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"code":`...)
	dst = jsonx.AppendString(dst, string(e.Code))
	dst = append(dst, `,"message":`...)
	dst = e.appendMessage(dst)
	return append(dst, '}')
}

// appendOwnResponse makes up the response of a stream that never showed one.
func (s *Stream) appendOwnResponse(dst []byte, e *Error) []byte {
	dst = append(dst, `{"id":`...)
	id := s.id
	if id == "" {
		id = "resp_" + e.RequestID
	}
	dst = jsonx.AppendString(dst, id)
	dst = append(dst, `,"object":"response","created_at":0,"status":"failed","error":`...)
	dst = appendResponseError(dst, e)
	dst = append(dst, `,"incomplete_details":null,"model":`...)
	if s.model != "" {
		dst = jsonx.AppendString(dst, s.model)
	} else {
		dst = jsonx.AppendString(dst, s.options.Model)
	}
	dst = append(dst, `,"output":`...)
	dst = s.appendOutput(dst)
	return append(dst, `,"usage":null}`...)
}

// appendFailedResponse appends the last response that was seen, with status, error, output and
// usage as they are now.
func (s *Stream) appendFailedResponse(dst []byte, e *Error) []byte {
	var p jsonx.Patch
	var r jsonx.Reader
	members := [...]struct {
		name  string
		value []byte
		seen  bool
	}{
		{name: "status", value: []byte(`"failed"`)},
		{name: "error", value: appendResponseError(nil, e)},
		{name: "output", value: s.appendOutput(nil)},
		{name: "usage", value: []byte("null")},
	}
	r.Reset(s.response)
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		from, to := r.Skip()
		for i := range members {
			if m := &members[i]; m.name == string(key) {
				p.ReplaceBytes(from, to, m.value)
				m.seen = true
			}
		}
	}
	for i := range members {
		if m := &members[i]; !m.seen {
			p.InsertMember(s.response, 0, m.name, m.value)
		}
	}
	return p.Append(dst, s.response)
}

// appendOutput appends the output items so far.
func (s *Stream) appendOutput(dst []byte) []byte {
	dst = append(dst, '[')
	first := true
	for i := range s.items {
		it := &s.items[i]
		if len(it.raw) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if it.done {
			dst = append(dst, it.raw...)
		} else {
			dst = it.appendIncomplete(dst)
		}
	}
	return append(dst, ']')
}

// appendIncomplete appends an item that was not done: as added, with what came of it.
func (it *keptItem) appendIncomplete(dst []byte) []byte {
	var p jsonx.Patch
	var r jsonx.Reader
	var kind string
	var contentAt, argumentsAt, statusAt Span
	r.Reset(it.raw)
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		if string(key) == "type" {
			kind = string(decodedText(&r))
			continue
		}
		from, to := r.Skip()
		switch string(key) {
		case "status":
			statusAt = Span{from, to}
		case "content":
			contentAt = Span{from, to}
		case "arguments", "input":
			argumentsAt = Span{from, to}
		}
	}
	if statusAt.Present() {
		p.Replace(statusAt.From, statusAt.To, `"incomplete"`)
	} else {
		p.InsertMember(it.raw, 0, "status", []byte(`"incomplete"`))
	}
	switch {
	case len(it.text) == 0:
	case kind == "message" && contentAt.Present():
		part := append([]byte(`[{"type":"output_text","annotations":[],"text":"`), it.text...)
		p.ReplaceBytes(contentAt.From, contentAt.To, append(part, `"}]`...))
	case argumentsAt.Present():
		p.ReplaceBytes(argumentsAt.From, argumentsAt.To, append(append([]byte{'"'}, it.text...), '"'))
	}
	return p.Append(dst, it.raw)
}

// responseEnding is the verdict on a responses stream.
func (s *Stream) responseEnding() Ending {
	switch {
	case s.failed:
		return Errored
	case s.broken:
		return Broken
	case !s.terminal:
		return Cut
	}
	return s.record.ending()
}
