package cohere

import (
	"unicode/utf8"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// document returns a text file, the i-th part of the message's, as the provider takes it.
func (w *writer) document(p *chat.Part, i int) ([]byte, error) {
	unsupported := func(message string) error { return interlock.Unsupported(w.part(i, ".file"), message) }
	switch {
	case p.FileID != nil:
		return nil, unsupported("this model's provider has no files: give file_data")
	case !isText(p.MediaType):
		return nil, unsupported("this model's provider takes text files, and not this type: " + p.MediaType)
	case p.Data.IsHandle():
		return nil, unsupported("this model's provider takes a text file as text: this one is too large to be decoded, give it as a part of type text")
	}
	text, ok := decodeBase64(p.Data.Text())
	if !ok || !utf8.Valid(text) {
		return nil, unsupported("is not text in UTF-8, as base64")
	}
	if len(text) == 0 {
		return nil, interlock.BadParam(w.part(i, ".file.file_data"), "must not be empty")
	}
	b := []byte(`{"data":{`)
	if !p.FileName.Empty() {
		b = json.AppendMember(b, "title", p.FileName)
	}
	return append(json.AppendText(b, "text", text), "}}"...), nil
}

func isText(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml":
		return true
	}
	return hasPrefix(media, "text/")
}

// decodeBase64 decodes either alphabet, with its padding or without. Package encoding/base64 would
// bring reflection into a module.
func decodeBase64(text []byte) (decoded []byte, ok bool) {
	decoded = make([]byte, 0, len(text)/4*3+2)
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	var bits uint32
	n := 0
	for _, c := range text {
		v := uint32(0)
		switch {
		case c-'A' < 26:
			v = uint32(c - 'A')
		case c-'a' < 26:
			v = uint32(c-'a') + 26
		case c-'0' <= 9:
			v = uint32(c-'0') + 52
		case c == '+' || c == '-':
			v = 62
		case c == '/' || c == '_':
			v = 63
		default:
			return nil, false
		}
		bits = bits<<6 | v
		if n += 6; n >= 8 {
			n -= 8
			decoded = append(decoded, byte(bits>>n))
		}
	}
	return decoded, n < 6
}

// appendDataURL appends a data: URL as a string. The data may be a handle: it stands behind the
// comma as it is.
func appendDataURL(b []byte, media string, data json.Value) []byte {
	b = json.AppendEscaped(append(b, `"data:`...), media)
	b = append(append(b, ";base64,"...), data.Contents()...)
	return append(b, '"')
}
