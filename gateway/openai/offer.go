package openai

import (
	"iter"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// Tool is a function that the caller offers to the model.
type Tool struct {
	Name       string
	Strict     bool
	Parameters []byte // raw JSON Schema, a part of the body; nil when none was given
}

// tools reads what kinds of tools are offered.
func (s *scan) tools() {
	if s.json.Peek() != jsonx.Array {
		s.json.Skip()
		return
	}
	from := s.json.Pos()
	s.json.Enter()
	for s.json.Item() {
		if s.json.Peek() != jsonx.Object {
			s.json.Skip()
			continue
		}
		s.tool()
	}
	s.r.toolsAt = Span{from, s.json.Pos()}
	s.textBytes += int64(s.json.Pos() - from)
}

func (s *scan) tool() {
	hosted := false
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "type":
			raw, _, _ := s.json.StrOrSkip()
			kind := string(raw)
			hosted = kind != "function" && kind != "custom" && kind != ""
		case "strict":
			s.r.StrictTools = s.json.TrueOrSkip() || s.r.StrictTools
		case "function":
			s.function()
		default:
			s.json.Skip()
		}
	}
	if hosted {
		s.r.HostedTools = true
	} else {
		s.r.Tools = true
	}
}

func (s *scan) function() {
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
		if string(key) == "strict" {
			s.r.StrictTools = s.json.TrueOrSkip() || s.r.StrictTools
		} else {
			s.json.Skip()
		}
	}
}

// OfferedTools walks the functions that a scanned body offers, in chat's shape or in that of
// responses, and a chat's old "functions". It reads them when asked, and allocates.
func (r *Request) OfferedTools(body []byte) iter.Seq[Tool] {
	return func(yield func(Tool) bool) {
		for _, at := range []Span{r.toolsAt, r.functionsAt} {
			if !at.Present() {
				continue
			}
			var j jsonx.Reader
			j.ResetAt(body, at.From)
			if j.Peek() != jsonx.Array {
				continue
			}
			j.Enter()
			for j.Item() {
				if t, ok := offered(&j); ok && !yield(t) {
					return
				}
			}
		}
	}
}

func offered(j *jsonx.Reader) (t Tool, ok bool) {
	if j.Peek() != jsonx.Object {
		j.Skip()
		return t, false
	}
	function := true
	j.Enter()
	for {
		key, _, more := j.Key()
		if !more {
			break
		}
		switch string(key) {
		case "type":
			kind := text(j)
			function = kind == "function" || kind == ""
		case "function":
			if inner, is := offered(j); is {
				t = inner
			}
		case "name":
			t.Name = text(j)
		case "strict":
			t.Strict = j.TrueOrSkip()
		case "parameters":
			null := j.Peek() == jsonx.Null
			if from, to := j.Skip(); !null {
				t.Parameters = j.Bytes(from, to)
			}
		default:
			j.Skip()
		}
	}
	return t, function && t.Name != ""
}
