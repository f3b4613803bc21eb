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
	b = append(json.AppendKey(b, "tools"), '[')
	if len(r.Tools) > 0 {
		b = append(b, `{"functionDeclarations":[`...)
		for i := range r.Tools {
			t := &r.Tools[i]
			b = append(json.AppendComma(b), '{')
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
			b = append(b, '}')
		}
		b = append(b, "]}"...)
	}
	for t := range ext.tools.Items() {
		b = append(json.AppendComma(b), t...)
	}
	return append(b, ']'), nil
}

// appendToolConfig appends which of the tools may or must be called.
func appendToolConfig(b []byte, r *chat.Request, ext *extension) []byte {
	mode := ""
	switch r.Choice.Mode {
	case chat.ToolsAuto:
		mode = "AUTO"
	case chat.ToolsNone:
		mode = "NONE"
	case chat.ToolsRequired, chat.ToolsNamed:
		mode = "ANY"
	}
	if len(r.Tools) == 0 && (mode == "AUTO" || mode == "NONE") {
		mode = ""
	}
	if mode == "" && ext.toolConfig.Empty() {
		return b
	}
	b = append(json.AppendKey(b, "toolConfig"), '{')
	if mode != "" || ext.calling != nil {
		b = append(json.AppendKey(b, "functionCallingConfig"), '{')
		if mode != "" && ext.calling.Get("mode").IsNull() {
			b = json.AppendText(b, "mode", mode)
			if r.Choice.Mode == chat.ToolsNamed && ext.calling.Get("allowedFunctionNames").IsNull() {
				b = append(append(json.AppendKey(b, "allowedFunctionNames"), '['), r.Choice.Name...)
				b = append(b, ']')
			}
		}
		b = append(appendMembers(b, ext.calling, ""), '}')
	}
	return append(appendMembers(b, ext.toolConfig, "functionCallingConfig"), '}')
}
