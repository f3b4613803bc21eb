package anthropic

import (
	"bytes"
	"unicode/utf8"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// media writes a part that is no text.
func (w *writer) media(p *chat.Part, control json.Value, here func() string) error {
	switch p.Kind {
	case chat.Image:
		return w.image(p, control, here)
	case chat.File:
		return w.file(p, control, here)
	}
	return interlock.Unsupported(here()+".type", "this model's provider does not take this type of content")
}

func (w *writer) image(p *chat.Part, control json.Value, here func() string) error {
	if p.URL != nil {
		if !isWebURL(p.URL.Contents()) {
			return interlock.Unsupported(here()+".image_url.url", "this model's provider fetches https: URLs only")
		}
		w.source("image", "url", "", "url", p.URL)
	} else {
		media := imageType(p.MediaType)
		if media == "" {
			return interlock.Unsupported(here()+".image_url.url", "this model's provider takes images as JPEG, PNG, GIF or WebP")
		}
		w.source("image", "base64", media, "data", p.Data)
	}
	w.end(control)
	return nil
}

func (w *writer) file(p *chat.Part, control json.Value, here func() string) error {
	unsupported := func(message string) error {
		return interlock.Unsupported(here()+".file", message)
	}
	image := imageType(p.MediaType)
	switch {
	case p.FileID != nil && isImageName(p.FileName.Text()):
		w.source("image", "file", "", "file_id", p.FileID)
		image = "file"
	case p.FileID != nil:
		image = ""
		w.source("document", "file", "", "file_id", p.FileID)
	case isWebURL(p.Data.Contents()):
		image = ""
		w.source("document", "url", "", "url", p.Data)
	case image != "":
		w.source("image", "base64", image, "data", p.Data)
	case p.MediaType == "application/pdf":
		w.source("document", "base64", p.MediaType, "data", p.Data)
	case isText(p.MediaType):
		if isHandle(p.Data) {
			return unsupported("this model's provider takes a text file as text: this one is too large to be decoded, give it as a part of type text")
		}
		text, ok := decodeBase64(p.Data.Text())
		if !ok || !utf8.Valid(text) {
			return unsupported("is not text in UTF-8, as base64")
		}
		if len(text) == 0 {
			return interlock.BadParam(here()+".file.file_data", "must not be empty")
		}
		w.source("document", "text", "text/plain", "data", json.AppendQuote(nil, text))
	default:
		return unsupported("this model's provider takes PDF, text and images, and not this type of file: " + p.MediaType)
	}
	if image == "" {
		w.describe(p)
	}
	w.end(control)
	return nil
}

// source begins a block with its source.
func (w *writer) source(block, kind, media, key string, v json.Value) {
	b := json.AppendText(append(w.open(true), '{'), "type", block)
	b = json.AppendText(append(json.AppendKey(b, "source"), '{'), "type", kind)
	if media != "" {
		b = json.AppendText(b, "media_type", media)
	}
	w.b = append(json.AppendMember(b, key, v), '}')
}

// describe gives a document its name and what else the provider knows of one.
func (w *writer) describe(p *chat.Part) {
	const mostTitle = 500 // characters; bytes are no fewer
	title := member(p.Others, "title")
	if title == nil && !p.FileName.Empty() && p.FileName.DecodedLen() <= mostTitle {
		title = p.FileName
	}
	w.b = json.AppendMember(w.b, "title", title)
	w.b = json.AppendMember(w.b, "context", member(p.Others, "context"))
	w.b = json.AppendMember(w.b, "citations", member(p.Others, "citations"))
}

func (w *writer) end(control json.Value) {
	w.b = append(json.AppendMember(w.b, "cache_control", control), '}')
}

// imageType is the provider's word for a media type, "" for one that it does not take.
func imageType(media string) string {
	switch media {
	case "image/jpg":
		return "image/jpeg"
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return media
	}
	return ""
}

func isImageName(file []byte) bool {
	dot := bytes.LastIndexByte(file, '.')
	if dot < 0 {
		return false
	}
	for _, end := range [...]string{"png", "jpg", "jpeg", "gif", "webp"} {
		if sameWord(file[dot+1:], end) {
			return true
		}
	}
	return false
}

func isText(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml":
		return true
	}
	return len(media) > 5 && media[:5] == "text/"
}

func isWebURL(url []byte) bool {
	for _, scheme := range [...]string{"https:", "http:"} {
		if len(url) > len(scheme) && sameWord(url[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}

// sameWord compares with a word in small letters.
func sameWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if lower(c) != word[i] {
			return false
		}
	}
	return true
}

// lower is for ASCII only: package bytes brings Unicode's tables into a module.
func lower(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

// isHandle says whether a string is the host's word for one that it kept to itself.
func isHandle(v json.Value) bool { return bytes.HasPrefix(v.Contents(), []byte("interlock:blob:")) }

// decodeBase64 decodes either alphabet, with its padding or without. Package encoding/base64 would
// bring reflection into a module.
func decodeBase64(text []byte) (decoded []byte, ok bool) {
	decoded = make([]byte, 0, len(text)/4*3+2)
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	var bits uint32
	digits := 0
	for _, c := range text {
		var d byte
		switch {
		case c-'A' < 26:
			d = c - 'A'
		case c-'a' < 26:
			d = c - 'a' + 26
		case c-'0' <= 9:
			d = c - '0' + 52
		case c == '+' || c == '-':
			d = 62
		case c == '/' || c == '_':
			d = 63
		case c == '\n' || c == '\r':
			continue
		default:
			return nil, false
		}
		bits = bits<<6 | uint32(d)
		if digits++; digits&3 == 0 {
			decoded = append(decoded, byte(bits>>16), byte(bits>>8), byte(bits))
		}
	}
	switch digits & 3 {
	case 1:
		return nil, false
	case 2:
		decoded = append(decoded, byte(bits>>4))
	case 3:
		decoded = append(decoded, byte(bits>>10), byte(bits>>2))
	}
	return decoded, true
}
