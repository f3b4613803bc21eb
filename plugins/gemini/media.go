package gemini

import (
	"bytes"

	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// extensionTypes are the media types by the ends of the names of what is given as a URI.
var extensionTypes = [...]struct{ end, media string }{
	{"png", "image/png"},
	{"jpg", "image/jpeg"},
	{"jpeg", "image/jpeg"},
	{"webp", "image/webp"},
	{"heic", "image/heic"},
	{"heif", "image/heif"},
	{"gif", "image/gif"},
	{"pdf", "application/pdf"},
	{"txt", "text/plain"},
	{"md", "text/markdown"},
	{"csv", "text/csv"},
	{"html", "text/html"},
	{"json", "application/json"},
	{"xml", "text/xml"},
	{"mp3", "audio/mpeg"},
	{"wav", "audio/wav"},
	{"ogg", "audio/ogg"},
	{"flac", "audio/flac"},
	{"aac", "audio/aac"},
	{"aiff", "audio/aiff"},
	{"m4a", "audio/mp4"},
	{"mp4", "video/mp4"},
	{"mov", "video/quicktime"},
	{"webm", "video/webm"},
	{"mpeg", "video/mpeg"},
	{"mpg", "video/mpeg"},
	{"avi", "video/x-msvideo"},
	{"flv", "video/x-flv"},
	{"wmv", "video/x-ms-wmv"},
	{"3gp", "video/3gpp"},
}

// mediaTypeOf guesses by the end of a name or URI, "" when that says nothing.
func mediaTypeOf(text []byte) string {
	if k := bytes.IndexByte(text, '?'); k >= 0 {
		text = text[:k]
	}
	if k := bytes.IndexByte(text, '#'); k >= 0 {
		text = text[:k]
	}
	dot := bytes.LastIndexByte(text, '.')
	if dot < 0 {
		return ""
	}
	end := append([]byte(nil), text[dot+1:]...)
	for i, c := range end {
		end[i] = lowerByte(c)
	}
	for _, e := range extensionTypes {
		if e.end == string(end) {
			return e.media
		}
	}
	return ""
}

func lowerByte(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

// media appends a part that is no text, the i-th of the message's: inlineData, or fileData for what the provider is to fetch.
func (w *writer) media(b []byte, p *chat.Part, i int) ([]byte, error) {
	b = char(b, '{')
	if p.Data != nil {
		media := p.MediaType
		switch {
		case media == "image/jpg":
			media = "image/jpeg"
		case media == "" && p.Kind == chat.File:
			media = mediaTypeOf(p.FileName.Text())
		}
		if media == "" {
			return nil, badParam(w.element(".content", i, ""), "its media type is unknown: give it in a data: URL, or a filename that tells")
		}
		b = object(b, "inlineData")
		b = json.AppendText(b, "mimeType", media)
		b = char(json.AppendMember(b, "data", p.Data), '}')
	} else {
		uri := p.URL
		if p.Kind == chat.File {
			uri = p.FileID
		}
		text := uri.Text()
		if !bytes.Contains(text, []byte("://")) {
			const files = "files/"
			if !bytes.HasPrefix(text, []byte(files)) || w.s.parent != "" {
				return nil, unsupported(w.element(".content", i, ""), "a file of another provider: give file_data, or the URI of an uploaded file")
			}
			full := append([]byte("https://generativelanguage.googleapis.com/"), w.s.version...)
			uri = json.AppendQuote(nil, join(char(full, '/'), text))
		}
		media := mediaTypeOf(p.FileName.Text())
		if media == "" {
			media = mediaTypeOf(text)
		}
		b = object(b, "fileData")
		if media != "" {
			b = json.AppendText(b, "mimeType", media)
		}
		b = char(json.AppendMember(b, "fileUri", uri), '}')
	}
	for i := range p.Others {
		if key := p.Others[i].Key; key == "videoMetadata" || key == "mediaResolution" {
			b = json.AppendMember(b, key, p.Others[i].Value)
		}
	}
	return char(b, '}'), nil
}
