package bedrock

import (
	"bytes"
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// format is what the provider calls a media type, and the kind of block that takes it.
type format struct{ media, block, name string }

var formats = [...]format{
	{"image/png", "image", "png"},
	{"image/jpeg", "image", "jpeg"},
	{"image/jpg", "image", "jpeg"},
	{"image/gif", "image", "gif"},
	{"image/webp", "image", "webp"},
	{"application/pdf", "document", "pdf"},
	{"text/csv", "document", "csv"},
	{"application/msword", "document", "doc"},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "document", "docx"},
	{"application/vnd.ms-excel", "document", "xls"},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "document", "xlsx"},
	{"text/html", "document", "html"},
	{"text/markdown", "document", "md"},
	{"application/json", "document", "txt"},
	{"application/xml", "document", "txt"},
	{"audio/mpeg", "audio", "mp3"},
	{"audio/mp3", "audio", "mp3"},
	{"audio/wav", "audio", "wav"},
	{"audio/x-wav", "audio", "wav"},
	{"audio/flac", "audio", "flac"},
	{"audio/ogg", "audio", "ogg"},
	{"audio/opus", "audio", "opus"},
	{"audio/aac", "audio", "aac"},
	{"audio/webm", "audio", "webm"},
	{"audio/mp4", "audio", "m4a"},
	{"audio/m4a", "audio", "m4a"},
	{"audio/x-m4a", "audio", "m4a"},
	{"video/mp4", "video", "mp4"},
	{"video/quicktime", "video", "mov"},
	{"video/x-matroska", "video", "mkv"},
	{"video/webm", "video", "webm"},
	{"video/x-flv", "video", "flv"},
	{"video/mpeg", "video", "mpeg"},
	{"video/x-ms-wmv", "video", "wmv"},
	{"video/3gpp", "video", "three_gp"},
}

// formatOf finds the format of a media type. Any text is a document.
func formatOf(media string) (format, bool) {
	for _, f := range formats {
		if f.media == media {
			return f, true
		}
	}
	if hasPrefix(media, "text/") {
		return format{media, "document", "txt"}, true
	}
	return format{}, false
}

// extensions are the ends of names of objects in S3, which come without a media type.
var extensions = [...]format{
	{"jpg", "image", "jpeg"}, {"txt", "document", "txt"}, {"text", "document", "txt"}, {"3gp", "video", "three_gp"},
}

func formatOfName(text []byte) (format, bool) {
	dot := bytes.LastIndexByte(text, '.')
	if dot < 0 {
		return format{}, false
	}
	end := append([]byte(nil), text[dot+1:]...)
	for i := range end {
		end[i] = lowerByte(end[i])
	}
	for _, f := range extensions {
		if f.media == string(end) {
			return f, true
		}
	}
	for _, f := range formats {
		if f.name == string(end) {
			return f, true
		}
	}
	return format{}, false
}

// media writes a part that is no text: {format, source}, a document with a name.
func (w *writer) media(p *chat.Part, here func() string) error {
	location := p.URL
	if location == nil && p.Data == nil {
		location = p.FileID
	}
	f, known := formatOf(p.MediaType)
	if location != nil {
		text := location.Text()
		if !bytes.HasPrefix(text, []byte("s3://")) {
			if p.Kind == chat.File {
				return interlock.Unsupported(here()+".file.file_id", "this model's provider has no such file: give file_data, or s3://…")
			}
			return interlock.Unsupported(here()+".image_url.url", "this model's provider does not fetch: give a data: URL, or s3://…")
		}
		if f, known = formatOfName(text); !known && p.Kind == chat.File {
			f, known = formatOfName(p.FileName.Text())
		}
	}
	if !known || p.Kind == chat.Image && f.block != "image" || p.Kind == chat.Audio && f.block != "audio" {
		return interlock.Unsupported(here(), "this model's provider does not take this type of content: "+p.MediaType)
	}
	b := append(append(append(w.open(true), `{"`...), f.block...), `":{"format":"`...)
	b = append(append(b, f.name...), '"')
	if f.block == "document" {
		b = w.appendName(b, p.FileName)
	}
	b = append(json.AppendKey(b, "source"), '{')
	if location != nil {
		b = append(json.AppendMember(append(json.AppendKey(b, "s3Location"), '{'), "uri", location), '}')
	} else {
		b = json.AppendMember(b, "bytes", p.Data)
	}
	b = append(b, '}')
	if citations := other(p, "citations"); f.block == "document" && citations.IsObject() {
		b = json.AppendMember(b, "citations", citations)
	}
	w.b = append(b, "}}"...)
	return nil
}

const mostName = 180 // bytes of a document's name; the provider takes 200

// appendName gives a document a name of the characters that the provider allows, and one that no
// other document of the request has.
func (w *writer) appendName(b []byte, file json.Value) []byte {
	text := file.Text()
	if dot := bytes.LastIndexByte(text, '.'); dot > 0 {
		text = text[:dot]
	}
	from := len(w.names) + 1
	w.names = append(w.names, 0)
	gap := false
	for _, c := range text {
		if len(w.names)-from == mostName {
			break
		}
		switch {
		case isWord(c) || c == '-' || c == '(' || c == ')' || c == '[' || c == ']':
		case gap:
			continue
		default:
			c = ' '
		}
		if gap = c == ' '; !gap || len(w.names) > from {
			w.names = append(w.names, c)
		}
	}
	if last := len(w.names) - 1; last >= from && w.names[last] == ' ' {
		w.names = w.names[:last]
	}
	if len(w.names) == from {
		w.names = append(w.names, "document"...)
	}
	plain := len(w.names)
	w.documents++
	for n := w.documents; w.taken(from); n++ {
		w.names = append(strconv.AppendUint(append(w.names[:plain], " ("...), n, 10), ')')
	}
	return json.AppendText(b, "name", w.names[from:])
}

// taken says whether an earlier document has the name that begins there.
func (w *writer) taken(from int) bool {
	for rest := w.names[:from-1]; len(rest) > 0; {
		rest = rest[1:] // the zero byte
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			end = len(rest)
		}
		if bytes.Equal(rest[:end], w.names[from:]) {
			return true
		}
		rest = rest[end:]
	}
	return false
}
