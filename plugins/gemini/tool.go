package gemini

import (
	"strconv"

	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// appendTools appends tools: the caller's functions and those of the extension.
func appendTools(b []byte, s *settings, r *chat.Request, ext *extension) ([]byte, error) {
	if len(r.Tools) == 0 && ext.tools == nil {
		return b, nil
	}
	b = array(b, "tools")
	if len(r.Tools) > 0 {
		b = raw(b, `{"functionDeclarations":[`)
		for i := range r.Tools {
			t := &r.Tools[i]
			b = char(next(b), '{')
			b = json.AppendMember(b, "name", t.Name)
			b = json.AppendMember(b, "description", t.Description)
			switch {
			case t.Parameters == nil:
			case !s.openapi:
				b = json.AppendMember(b, "parametersJsonSchema", t.Parameters)
			case !t.Parameters.Get("properties").Empty(): // the dialect has no object without properties
				schema, err := openAPI(t.Parameters, "tools["+strconv.Itoa(i)+"].function.parameters")
				if err != nil {
					return nil, err
				}
				b = json.AppendMember(b, "parameters", schema)
			}
			b = char(b, '}')
		}
		b = raw(b, "]}")
	}
	for t := range ext.tools.Items() {
		b = join(next(b), t)
	}
	return char(b, ']'), nil
}

// appendToolConfig appends which of the tools may or must be called.
func appendToolConfig(b []byte, r *chat.Request, ext *extension) []byte {
	mode := modes[r.Choice.Mode]
	if len(r.Tools) == 0 && r.Choice.Mode < chat.ToolsRequired {
		mode = ""
	}
	calling := []byte{'{'}
	if mode != "" && ext.calling.Get("mode").IsNull() {
		calling = json.AppendText(calling, "mode", mode)
		if r.Choice.Mode == chat.ToolsNamed && ext.calling.Get("allowedFunctionNames").IsNull() {
			calling = char(join(array(calling, "allowedFunctionNames"), r.Choice.Name), ']')
		}
	}
	calling = char(appendMembers(calling, ext.calling, ""), '}')
	if len(calling) == 2 && ext.toolConfig == nil {
		return b
	}
	b = object(b, "toolConfig")
	if len(calling) > 2 {
		b = json.AppendMember(b, "functionCallingConfig", calling)
	}
	return char(appendMembers(b, ext.toolConfig, "functionCallingConfig"), '}')
}

// modes are the provider's words. What is named is the only function that may be called.
var modes = [...]string{
	chat.ToolsUnset: "", chat.ToolsAuto: "AUTO", chat.ToolsNone: "NONE", chat.ToolsRequired: "ANY", chat.ToolsNamed: "ANY",
}
