package azure

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func events(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
	s := stream{out: out}
	if !s.load(c.State) {
		return interlock.Internal("the state is not this plugin's")
	}
	for i := range in {
		if err := s.event(c, &in[i]); err != nil {
			return err
		}
		if out.Done {
			break
		}
	}
	out.State = s.append(out.State[:0])
	return nil
}

// event takes one event of any endpoint.
func (s *stream) event(c *interlock.Call, f *interlock.Frame) error {
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		s.out.Done = true
		return nil
	}
	v, err := json.Parse(data)
	if err != nil || !v.IsObject() {
		return interlock.Malformed("an event is not a JSON object")
	}
	if f.Name == "error" {
		failure := read(v)
		return &failure
	}
	switch c.Endpoint {
	case "responses":
		return s.response(f.Name, v)
	case "chat_completions":
		return s.chunk(v)
	}
	if e := v.Get("error"); !e.IsNull() {
		failure := read(v)
		return &failure
	}
	s.emit(f.Name, v)
	return nil
}

// emit passes an event. Where the provider has broken one into lines, they are joined.
func (s *stream) emit(name string, v json.Value) {
	if bytes.IndexByte(v, '\n') >= 0 || bytes.IndexByte(v, '\r') >= 0 {
		s.out.Close(json.Compact(s.out.Open(name), v))
		return
	}
	s.out.EmitNamed(name, v)
}

// response takes an event of a response: the last one says how it ended.
func (s *stream) response(name string, v json.Value) error {
	kind := v.Get("type")
	switch {
	case kind.Is("error"):
		f := read(v)
		return &f
	case kind.Is("response.failed"):
		f := read(v.Get("response"))
		return &f
	case kind.Is("response.completed"), kind.Is("response.incomplete"):
		s.out.Done = true
	}
	s.emit(name, v)
	return nil
}
