package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

const anyObject = `{"type":"object","properties":{}}`

// plan is what becomes of the tools and of the answer's format.
type plan struct {
	tools  bool   // the caller's tools are declared
	native bool   // the answer's schema is output_config's
	answer string // the tool by which the model gives its answer as JSON, "" without
	choice string // the type of tool_choice, "" where it is left to the provider
	named  json.Value
	single bool // one call at most
}

// forced says whether the model has to call a tool.
func (p *plan) forced() bool { return p.choice == "any" || p.choice == "tool" }

func planTools(r *chat.Request, s *settings, ext *extension) plan {
	p := plan{tools: len(r.Tools) > 0, single: r.ParallelToolCalls == chat.Off && len(r.Tools) > 0}
	if p.tools {
		switch r.Choice.Mode {
		case chat.ToolsAuto:
			p.choice = "auto"
		case chat.ToolsNone:
			p.choice = "none"
		case chat.ToolsRequired:
			p.choice = "any"
		case chat.ToolsNamed:
			p.choice, p.named = "tool", r.Choice.Name
		}
	}
	f := &r.Format
	switch {
	case f.Kind == chat.TextFormat || !ext.output.Get("format").IsNull():
	case f.Kind == chat.SchemaFormat && f.Schema != nil && !s.viaTool:
		p.native = true
	case p.forced(): // the caller wants a call: there is no answer to have a format
	default:
		p.answer = answerName(r)
		p.tools = p.tools && p.choice != "none"
		if p.choice = "any"; !p.tools {
			p.choice, p.named = "tool", json.AppendQuote(nil, p.answer)
		}
	}
	if p.single && p.choice == "" {
		p.choice = "auto"
	}
	return p
}

// answerName is a name that none of the caller's tools has.
func answerName(r *chat.Request) string {
	n := "structured_answer"
	for i := 0; i < len(r.Tools); i++ {
		if r.Tools[i].Name.Is(n) {
			n += "_"
			i = -1
		}
	}
	return n
}

// append writes tools and tool_choice.
func (p *plan) append(b []byte, r *chat.Request, s *settings, ext *extension) []byte {
	if !p.tools && p.answer == "" && ext.tools == nil {
		return b
	}
	b = append(json.AppendKey(b, "tools"), '[')
	if p.tools {
		for i := range r.Tools {
			t := &r.Tools[i]
			b = appendTool(json.AppendComma(b), t.Name, t.Description, t.Parameters, t.Strict && !s.viaTool)
			b = append(json.AppendMember(b, "cache_control", cacheControl(t.Others)), '}')
		}
	}
	if p.answer != "" {
		about := r.Format.Description
		if about.Empty() {
			about = json.Value(`"Gives the answer to the user. Its input is the whole answer: call it instead of writing one."`)
		}
		schema := r.Format.Schema
		if schema == nil {
			schema = json.Value(`{"type":"object"}`)
		}
		b = append(appendTool(json.AppendComma(b), json.AppendQuote(nil, p.answer), about, schema, false), '}')
	}
	for t := range ext.tools.Items() {
		b = append(json.AppendComma(b), t...)
	}
	b = append(b, ']')
	if p.choice == "" || ext.choice {
		return b
	}
	b = json.AppendText(append(json.AppendKey(b, "tool_choice"), '{'), "type", p.choice)
	b = json.AppendMember(b, "name", p.named)
	if p.single && p.choice != "none" {
		b = json.AppendBool(b, "disable_parallel_tool_use", true)
	}
	return append(b, '}')
}

// appendTool writes a tool without its end.
func appendTool(b []byte, name, about, schema json.Value, strict bool) []byte {
	b = json.AppendMember(append(b, '{'), "name", name)
	if !about.Empty() {
		b = json.AppendMember(b, "description", about)
	}
	b = json.AppendKey(b, "input_schema")
	switch {
	case schema.Empty():
		b = append(b, anyObject...)
	case schema.Get("type") == nil: // the provider wants to be told
		b = append(b, `{"type":"object"`...)
		for key, v := range schema.Members() {
			b = appendMember(b, key, v)
		}
		b = append(b, '}')
	default:
		b = append(b, schema...)
	}
	if strict {
		b = json.AppendBool(b, "strict", true)
	}
	return b
}

// cacheControl is the member of that name, nil when it is not there.
func cacheControl(others []chat.Member) json.Value {
	if v := member(others, "cache_control"); v.IsObject() {
		return v
	}
	return nil
}

func member(others []chat.Member, key string) (v json.Value) {
	for i := range others {
		if others[i].Key == key && !others[i].Value.IsNull() {
			v = others[i].Value
		}
	}
	return v
}

// appendID writes the ID of a call. One that the provider would refuse, because another made it
// up, is replaced by one that is made of it: the call and its result still match.
func appendID(b []byte, id json.Value) []byte {
	const most = 128
	text := id.Text()
	fits := len(text) <= most
	hash := uint64(14695981039346656037)
	for _, c := range text {
		hash = (hash ^ uint64(c)) * 1099511628211
		fits = fits && isID(c)
	}
	if fits {
		return append(b, id...)
	}
	b = append(b, '"')
	for _, c := range text[:min(len(text), most-17)] {
		if !isID(c) {
			c = '_'
		}
		b = append(b, c)
	}
	b = append(b, '_')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[hash>>shift&15])
	}
	return append(b, '"')
}

// call writes a call that the assistant made.
func (w *writer) call(t *chat.ToolCall, at func() string) error {
	input, ok := t.ArgumentsJSON()
	if !ok {
		return interlock.BadParam(at()+".function.arguments", "must be a JSON object")
	}
	b := append(w.open(false), `{"type":"tool_use","id":`...)
	b = json.AppendMember(appendID(b, t.ID), "name", t.Name)
	w.b = append(json.AppendMember(b, "input", input), '}')
	return nil
}

// result writes the message of a tool. What says how far to cache stands beside the content, as
// the last part of it has it.
func (w *writer) result(m *chat.Message, at messageIndex) error {
	w.b = appendID(append(w.open(true), `{"type":"tool_result","tool_use_id":`...), m.ToolCallID)
	before := len(w.b)
	w.b = append(json.AppendKey(w.b, "content"), '[')
	empty := len(w.b)
	w.nested = true
	err := w.parts(m, at)
	w.nested = false
	if len(w.b) == empty {
		w.b = w.b[:before] // a result of nothing
	} else {
		w.b = append(w.b, ']')
	}
	var control json.Value
	for i := range m.Parts {
		if c := cacheControl(m.Parts[i].Others); c != nil {
			control = c
		}
	}
	w.b = append(json.AppendMember(w.b, "cache_control", control), '}')
	return err
}
