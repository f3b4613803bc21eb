package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

const anyObject = `{"type":"object","properties":{}}`

// plan is what becomes of the tools.
type plan struct {
	tools    bool   // the caller's tools are declared
	asText   bool   // no tools may be declared: calls and results in the history are told as text
	mustCall bool   // the caller wants a call: there is no answer to have a format
	answer   string // the tool by which the model gives its answer as JSON, "" without
	any      bool   // toolChoice: some tool; else answer or named, or up to the model
	named    json.Value
}

// forced says whether toolChoice is written.
func (p *plan) forced() bool { return p.any || p.named != nil || p.answer != "" }

func planTools(r *chat.Request, s *settings, ext *extension) plan {
	p := plan{tools: len(r.Tools) > 0 && r.Choice.Mode != chat.ToolsNone}
	if p.tools {
		switch r.Choice.Mode {
		case chat.ToolsRequired:
			p.any, p.mustCall = true, true
		case chat.ToolsNamed:
			p.named, p.mustCall = r.Choice.Name, true
		}
	}
	if !p.mustCall && (r.Format.Kind == chat.ObjectFormat || r.Format.Kind == chat.SchemaFormat && s.viaTool) {
		p.answer = answerName(r)
		p.any = p.tools
	}
	p.asText = !p.tools && p.answer == "" && ext.tools == nil
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

func appendToolConfig(b []byte, r *chat.Request, p *plan, ext *extension) []byte {
	if p.asText {
		return b
	}
	b = append(json.AppendKey(b, "toolConfig"), `{"tools":[`...)
	if p.tools {
		for i := range r.Tools {
			t := &r.Tools[i]
			b = appendTool(json.AppendComma(b), t.Name, t.Description, t.Parameters, t.Strict)
		}
	}
	if p.answer != "" {
		schema := r.Format.Schema
		if schema == nil {
			schema = json.Value(`{"type":"object"}`)
		}
		about := description(r.Format.Description)
		if about == nil {
			about = json.Value(`"Gives the answer to the user. Its input is the whole answer: call it instead of writing one."`)
		}
		b = appendTool(json.AppendComma(b), json.AppendQuote(nil, p.answer), about, schema, r.Format.Strict)
	}
	for t := range ext.tools.Items() {
		b = append(json.AppendComma(b), t...)
	}
	b = append(b, ']')
	switch {
	case ext.toolChoice != nil:
		b = json.AppendMember(b, "toolChoice", ext.toolChoice)
	case p.any:
		b = append(json.AppendKey(b, "toolChoice"), `{"any":{}}`...)
	case p.forced():
		n := p.named
		if n == nil {
			n = json.AppendQuote(nil, p.answer)
		}
		b = append(json.AppendKey(b, "toolChoice"), `{"tool":{`...)
		b = append(json.AppendMember(b, "name", n), "}}"...)
	}
	return append(b, '}')
}

func appendTool(b []byte, name, about, schema json.Value, strict bool) []byte {
	b = append(b, `{"toolSpec":{`...)
	b = json.AppendMember(b, "name", name)
	b = json.AppendMember(b, "description", description(about))
	if schema == nil {
		schema = json.Value(anyObject)
	}
	b = append(json.AppendMember(append(json.AppendKey(b, "inputSchema"), '{'), "json", schema), '}')
	if strict {
		b = json.AppendBool(b, "strict", true)
	}
	return append(b, "}}"...)
}

// appendID writes the ID of a call. One that the provider would refuse, because another made it
// up, is replaced by one that is made of it: the call and its result still match.
func appendID(b []byte, id json.Value) []byte {
	const most = 64
	text := id.Text()
	fits := len(text) <= most
	hash := uint64(14695981039346656037)
	for _, c := range text {
		hash = (hash ^ uint64(c)) * 1099511628211
		fits = fits && idByte(c)
	}
	if fits {
		return append(b, id...)
	}
	b = append(b, '"')
	for _, c := range text[:min(len(text), most-17)] {
		if !idByte(c) {
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

func idByte(c byte) bool { return isWord(c) || c == '_' || c == '-' || c == '.' || c == ':' }

// call writes a call that the assistant made.
func (w *writer) call(t *chat.ToolCall, at string) error {
	input, ok := t.ArgumentsJSON()
	if !ok {
		return interlock.BadParam(at+".function.arguments", "must be a JSON object")
	}
	if w.plan.asText {
		b := append(w.open(false), `{"text":"<tool_call name=\"`...)
		b = append(append(b, t.Name.Contents()...), `\">`...)
		b = json.AppendEscaped(b, []byte(input))
		w.b = append(b, `</tool_call>"}`...)
		return nil
	}
	b := append(w.open(false), `{"toolUse":{"toolUseId":`...)
	b = json.AppendMember(appendID(b, t.ID), "name", t.Name)
	w.b = append(json.AppendMember(b, "input", input), "}}"...)
	return nil
}

// result writes the message of a tool.
func (w *writer) result(m *chat.Message, at string) error {
	if w.plan.asText {
		// The text of a result may be a handle, which has to be a string of its own.
		w.b = append(w.open(true), `{"text":"<tool_result>"}`...)
		if err := w.parts(m, at); err != nil {
			return err
		}
		w.b = append(w.open(true), `{"text":"</tool_result>"}`...)
		return nil
	}
	b := append(w.open(true), `{"toolResult":{"toolUseId":`...)
	w.b = append(json.AppendKey(appendID(b, m.ToolCallID), "content"), '[')
	w.nested = true
	err := w.parts(m, at)
	w.nested = false
	w.b = append(w.b, "]}}"...)
	w.cachePointOf(m)
	return err
}
