package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// media writes a part that is no text, the i-th of the message's.
func (w *writer) media(p *chat.Part, i int) error {
	switch p.Kind {
	case chat.Image:
		w.b = append(w.b, `{"type":"image_url","image_url":{"url":`...)
		if p.URL != nil {
			w.b = append(w.b, p.URL...)
		} else {
			w.b = appendDataURL(w.b, p.MediaType, p.Data)
		}
		w.b = append(json.AppendMember(w.b, "detail", p.Detail), "}}"...)
	case chat.Audio: // base64 or a URL; which format it is the provider sees itself
		w.b = append(append(append(w.b, `{"type":"input_audio","input_audio":`...), p.Data...), '}')
	case chat.File:
		return w.file(p, i)
	}
	return nil
}

// file writes a document: one that the provider has, one that it fetches, or its contents.
func (w *writer) file(p *chat.Part, i int) error {
	switch {
	case p.FileID != nil && !isWebURL(p.FileID.Contents()):
		w.b = append(append(append(w.b, `{"type":"file","file_id":`...), p.FileID...), '}')
		return nil
	case p.FileID != nil:
		w.b = append(append(w.b, `{"type":"document_url","document_url":`...), p.FileID...)
	case isWebURL(p.Data.Contents()):
		w.b = append(append(w.b, `{"type":"document_url","document_url":`...), p.Data...)
	case p.MediaType == "":
		return interlock.BadParam(w.part(i)+".file", "its media type is unknown: give file_data as a data: URL, or a filename that tells")
	default:
		w.b = append(w.b, `{"type":"document_url","document_url":`...)
		w.b = appendDataURL(w.b, p.MediaType, p.Data)
	}
	w.b = append(json.AppendMember(w.b, "document_name", p.FileName), '}')
	return nil
}

// appendDataURL appends a data: URL as a string. The data may be a handle: it stands behind the
// comma as it is.
func appendDataURL(b []byte, media string, data json.Value) []byte {
	b = json.AppendEscaped(append(b, `"data:`...), media)
	b = append(append(b, ";base64,"...), data.Contents()...)
	return append(b, '"')
}

// isWebURL says whether the contents of a string begin as a URL that the provider can fetch.
func isWebURL(b []byte) bool {
	return len(b) > 8 && (string(b[:8]) == "https://" || string(b[:7]) == "http://")
}
