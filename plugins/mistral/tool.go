package mistral

import (
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// appendTools appends tools: the caller's functions and those of the extension. The provider wants
// parameters for each.
func appendTools(b []byte, r *chat.Request, ext *extension) []byte {
	if len(r.Tools) == 0 && ext.tools == nil {
		return b
	}
	b = append(json.AppendKey(b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		parameters := t.Parameters
		if parameters == nil {
			parameters = json.Value(`{"type":"object","properties":{}}`)
		}
		b = append(append(json.AppendComma(b), `{"type":"function","function":{"name":`...), t.Name...)
		b = json.AppendMember(b, "description", t.Description)
		b = json.AppendMember(b, "parameters", parameters)
		if t.Strict {
			b = json.AppendBool(b, "strict", true)
		}
		b = append(b, "}}"...)
	}
	for t := range ext.tools.Items() {
		b = append(json.AppendComma(b), t...)
	}
	return append(b, ']')
}

const (
	idLen    = 9
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// appendID writes the ID of a call. The provider takes nine letters and digits and nothing else:
// another's is replaced by one that is made of it, so that a call and its result still match.
func appendID(b []byte, id json.Value) []byte {
	text := id.Text()
	fits := len(text) == idLen
	hash := uint64(14695981039346656037) // FNV-1a
	for _, c := range text {
		hash = (hash ^ uint64(c)) * 1099511628211
		fits = fits && (c-'0' <= 9 || c-'a' < 26 || c-'A' < 26)
	}
	if fits {
		return append(b, id...)
	}
	b = append(b, '"')
	for range idLen {
		b = append(b, alphabet[hash%uint64(len(alphabet))])
		hash /= uint64(len(alphabet))
	}
	return append(b, '"')
}
