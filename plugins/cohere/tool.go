package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// tools writes the tools and which of them must be called. The provider cannot be told to call
// one function: it is given that one only, and has to call a tool.
func (p *params) tools(r *chat.Request) error {
	only := r.Choice.Name
	strict, wrote := true, false
	list := []byte{'['}
	for i := range r.Tools {
		t := &r.Tools[i]
		if only != nil && string(only.Text()) != string(t.Name.Text()) {
			continue
		}
		wrote = true
		// It is strict with all tools or with none, and wants a parameter that has to be there.
		strict = strict && t.Strict && !t.Parameters.Get("required").Empty()
		list = appendTool(json.AppendComma(list), t)
	}
	if only != nil && !wrote {
		return interlock.BadParam("tool_choice.function.name", "is not the name of one of the tools")
	}
	if wrote {
		p.b = json.AppendMember(p.b, "tools", append(list, ']'))
		if strict {
			p.set("strict_tools", json.Value("true"))
		}
	}
	switch r.Choice.Mode {
	case chat.ToolsNone:
		if wrote {
			p.set("tool_choice", json.Value(`"NONE"`))
		}
	case chat.ToolsRequired, chat.ToolsNamed:
		p.set("tool_choice", json.Value(`"REQUIRED"`))
	}
	return nil
}

func appendTool(b []byte, t *chat.Tool) []byte {
	parameters := t.Parameters
	if parameters == nil {
		parameters = json.Value(`{"type":"object","properties":{}}`)
	}
	b = append(append(b, `{"type":"function","function":{"name":`...), t.Name...)
	b = json.AppendMember(b, "description", t.Description)
	return append(json.AppendMember(b, "parameters", parameters), "}}"...)
}
