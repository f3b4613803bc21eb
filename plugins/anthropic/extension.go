package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extension is the caller's object "anthropic": members of a request as the provider has them.
// What it says goes before what is made of OpenAI's parameters.
type extension struct {
	all    json.Value // an object or nil
	tools  json.Value // an array or nil, behind the caller's tools
	system json.Value // an array or nil, behind what the system says
	output json.Value // output_config: an object or nil
	budget uint64     // of thinking, 0 without
	choice bool       // tool_choice is there
	thinks bool       // thinking is there
}

func readExtension(v json.Value) (ext extension, err error) {
	if v == nil {
		return ext, nil
	}
	if !v.IsObject() {
		return ext, interlock.BadParam(name, "must be an object")
	}
	ext.all = v
	for key, v := range v.Members() {
		if v.IsNull() {
			continue
		}
		switch string(key) {
		case "tools":
			if ext.tools = v; !v.IsArray() {
				return ext, interlock.BadParam(name+".tools", "must be an array")
			}
		case "system":
			if ext.system = v; !v.IsArray() {
				return ext, interlock.BadParam(name+".system", "must be an array")
			}
		case "output_config":
			if ext.output = v; !v.IsObject() {
				return ext, interlock.BadParam(name+".output_config", "must be an object")
			}
		case "tool_choice":
			ext.choice = true
		case "thinking":
			ext.thinks = true
			ext.budget, _ = v.Get("budget_tokens").Uint()
		case "model", "messages", "stream", "max_tokens":
			// What the gateway routes and accounts by is said in one place.
			return ext, interlock.Unsupported(name+"."+string(key), "is made of the request itself")
		}
	}
	if ext.tools.Empty() {
		ext.tools = nil
	}
	return ext, nil
}

// has says whether the caller gives that member.
func (e *extension) has(key string) bool { return !e.all.Get(key).IsNull() }

// appendRest appends the members that are not merged with others elsewhere.
func (e *extension) appendRest(b []byte) []byte {
	for key, v := range e.all.Members() {
		switch string(key) {
		case "tools", "system", "output_config":
			continue
		}
		if !v.IsNull() {
			b = appendMember(b, key, v)
		}
	}
	return b
}

// appendOutput writes output_config: the members given, and the caller's own before them.
func (e *extension) appendOutput(b []byte, effort string, format json.Value) []byte {
	if effort == "" && format == nil && e.output == nil {
		return b
	}
	b = append(json.AppendKey(b, "output_config"), '{')
	if effort != "" && e.output.Get("effort").IsNull() {
		b = json.AppendText(b, "effort", effort)
	}
	if e.output.Get("format").IsNull() {
		b = json.AppendMember(b, "format", format)
	}
	for key, v := range e.output.Members() {
		if !v.IsNull() {
			b = appendMember(b, key, v)
		}
	}
	return append(b, '}')
}

// appendMember appends a member whose key may need escapes.
func appendMember(b, key []byte, v json.Value) []byte {
	return append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
}
