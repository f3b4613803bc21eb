package chat

import (
	"bytes"
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func (rd *reader) messages(v json.Value) {
	list := rd.must(json.Array, v, "messages")
	n := 0
	for range list.Items() {
		n++
	}
	if n == 0 {
		rd.bad("messages", "must not be empty")
		return
	}
	rd.r.Messages = make([]Message, n)
	i := 0
	for m := range list.Items() {
		if rd.err != nil {
			return
		}
		rd.message(&rd.r.Messages[i], m, "messages["+strconv.Itoa(i)+"]")
		i++
	}
}

func (rd *reader) message(m *Message, v json.Value, at string) {
	if !v.IsObject() {
		rd.bad(at, "must be an object")
		return
	}
	var role, content, calls, data json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "role":
			role = v
		case "content":
			content = v
		case "name":
			m.Name = rd.want(json.String, v, at, ".name")
		case "tool_call_id":
			m.ToolCallID = v
		case "tool_calls":
			calls = rd.want(json.Array, v, at, ".tool_calls")
		case "refusal":
			m.Refusal = rd.want(json.String, v, at, ".refusal")
		case "reasoning_content":
			m.Reasoning = rd.want(json.String, v, at, ".reasoning_content")
		case "provider_data":
			data = rd.want(json.Array, v, at, ".provider_data")
		case "function_call":
			if !v.IsNull() && rd.err == nil {
				rd.err = interlock.Unsupported(at+".function_call", "function_call is not supported: use tool_calls")
			}
		}
	}
	if m.Role = rd.role(role, at); m.Role == 0 {
		return
	}
	rd.content(m, content, at)
	if m.Role == ToolRole {
		m.ToolCallID = rd.must(json.String, m.ToolCallID, at, ".tool_call_id")
	} else {
		m.ToolCallID = nil
	}
	if m.Role != Assistant {
		m.Refusal, m.Reasoning = nil, nil
		return
	}
	rd.calls(m, calls, at)
	for item := range data.Items() {
		if rd.want(json.Object, item, at, ".provider_data") == nil {
			rd.bad(at+".provider_data", "must be an array of objects")
			return
		}
		m.ProviderData = append(m.ProviderData, item)
	}
}

func (rd *reader) role(v json.Value, at string) Role {
	v = rd.must(json.String, v, at, ".role")
	switch {
	case v == nil:
	case v.Is("system"):
		return System
	case v.Is("developer"):
		return Developer
	case v.Is("user"):
		return User
	case v.Is("assistant"):
		return Assistant
	case v.Is("tool"):
		return ToolRole
	case v.Is("function"):
		if rd.err == nil {
			rd.err = interlock.Unsupported(at+".role", "the role function is not supported: use tool")
		}
	default:
		rd.bad(at+".role", `must be "system", "developer", "user", "assistant" or "tool"`)
	}
	return 0
}

func (rd *reader) content(m *Message, v json.Value, at string) {
	switch v.Kind() {
	case json.Absent, json.Null:
		if m.Role != Assistant {
			rd.bad(at+".content", "is missing")
		}
	case json.String:
		m.Parts = []Part{{Kind: Text, Text: v}}
	case json.Array:
		i := 0
		for p := range v.Items() {
			m.Parts = append(m.Parts, Part{})
			rd.part(&m.Parts[i], p, at+".content["+strconv.Itoa(i)+"]", m.Role)
			if rd.err != nil {
				return
			}
			i++
		}
	default:
		rd.bad(at+".content", "must be a string or an array")
	}
}

func (rd *reader) part(p *Part, v json.Value, at string, role Role) {
	if !v.IsObject() {
		rd.bad(at, "must be an object")
		return
	}
	var kind, text, refusal, image, file, audio json.Value
	for key, v := range v.Members() {
		switch string(key) {
		case "type":
			kind = v
		case "text":
			text = v
		case "refusal":
			refusal = v
		case "image_url":
			image = v
		case "file":
			file = v
		case "input_audio":
			audio = v
		default:
			p.Others = append(p.Others, Member{string(key), v})
		}
	}
	kind = rd.must(json.String, kind, at, ".type")
	user := role == User || role == ToolRole
	switch {
	case kind == nil:
	case kind.Is("text"):
		p.Kind, p.Text = Text, rd.text(text, at, ".text")
	case kind.Is("refusal") && role == Assistant:
		p.Kind, p.Text = Text, rd.text(refusal, at, ".refusal")
	case kind.Is("image_url") && user:
		rd.image(p, image, at)
	case kind.Is("file") && user:
		rd.file(p, file, at)
	case kind.Is("input_audio") && user:
		rd.audio(p, audio, at)
	default:
		rd.bad(at+".type", "is not a type of content that this role may have")
	}
}

// text wants a string that may be empty.
func (rd *reader) text(v json.Value, path ...string) json.Value {
	if v.IsNull() {
		rd.bad(join(path), "is missing")
	}
	return rd.want(json.String, v, path...)
}

func (rd *reader) image(p *Part, v json.Value, at string) {
	p.Kind = Image
	url := v
	if v.Kind() != json.String { // some clients write the URL itself
		v = rd.must(json.Object, v, at, ".image_url")
		url = v.Get("url")
		p.Detail = rd.want(json.String, v.Get("detail"), at, ".image_url.detail")
	}
	if url = rd.must(json.String, url, at, ".image_url.url"); url == nil {
		return
	}
	var isData bool
	if p.MediaType, p.Data, isData = rd.dataURL(url, at, ".image_url.url"); !isData {
		p.URL = url
	}
}

func (rd *reader) file(p *Part, v json.Value, at string) {
	p.Kind = File
	v = rd.must(json.Object, v, at, ".file")
	p.FileID = rd.want(json.String, v.Get("file_id"), at, ".file.file_id")
	p.FileName = rd.want(json.String, v.Get("filename"), at, ".file.filename")
	data := rd.want(json.String, v.Get("file_data"), at, ".file.file_data")
	switch {
	case rd.err != nil:
	case data == nil && p.FileID == nil:
		rd.bad(at+".file", "needs file_data or file_id")
	case data != nil:
		var isData bool
		if p.MediaType, p.Data, isData = rd.dataURL(data, at, ".file.file_data"); !isData {
			p.Data = data
		}
		if p.MediaType == "" {
			p.MediaType = mediaTypeOfName(p.FileName.Text())
		}
	}
}

func (rd *reader) audio(p *Part, v json.Value, at string) {
	p.Kind = Audio
	v = rd.must(json.Object, v, at, ".input_audio")
	p.Data = rd.must(json.String, v.Get("data"), at, ".input_audio.data")
	p.Format = rd.must(json.String, v.Get("format"), at, ".input_audio.format")
	switch format := p.Format.Text(); string(format) {
	case "":
	case "mp3":
		p.MediaType = "audio/mpeg"
	default:
		p.MediaType = "audio/" + string(lower(format))
	}
}

func (rd *reader) calls(m *Message, v json.Value, at string) {
	i := 0
	for c := range v.Items() {
		here := at + ".tool_calls[" + strconv.Itoa(i) + "]"
		i++
		if !c.IsObject() {
			rd.bad(here, "must be an object")
			return
		}
		if kind := c.Get("type"); !kind.IsNull() && !kind.Is("function") {
			if rd.err == nil {
				rd.err = interlock.Unsupported(here+".type", "only calls of type function are supported")
			}
			return
		}
		f := rd.must(json.Object, c.Get("function"), here, ".function")
		call := ToolCall{
			ID:        rd.must(json.String, c.Get("id"), here, ".id"),
			Name:      rd.must(json.String, f.Get("name"), here, ".function.name"),
			Arguments: rd.want(json.String, f.Get("arguments"), here, ".function.arguments"),
		}
		if call.Arguments == nil {
			call.Arguments = json.Value(`""`)
		}
		if rd.err != nil {
			return
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
}

// dataURL takes a data: URL apart. data is a string of its own. isData is false when the URL is
// another; a data: URL that does not say base64 is an error.
func (rd *reader) dataURL(url json.Value, path ...string) (mediaType string, data json.Value, isData bool) {
	raw := url.Contents()
	if len(raw) < 5 || string(lower(raw[:5])) != "data:" {
		return "", nil, false
	}
	comma := bytes.IndexByte(raw, ',')
	if comma < 0 {
		rd.bad(join(path), "is not a data: URL: there is no comma")
		return "", nil, true
	}
	head := make([]byte, 0, comma+2)
	head = append(append(append(head, '"'), raw[:comma]...), '"')
	params := lower(json.Value(head).Text()[5:])
	params, isBase64 := bytes.CutSuffix(params, []byte(";base64"))
	if !isBase64 {
		rd.bad(join(path), "is not a data: URL with base64")
		return "", nil, true
	}
	if k := bytes.IndexByte(params, ';'); k >= 0 {
		params = params[:k]
	}
	raw = raw[comma+1:]
	if len(raw) == 0 {
		rd.bad(join(path), "is a data: URL without data")
		return "", nil, true
	}
	data = make([]byte, 0, len(raw)+2)
	data = append(append(append(data, '"'), raw...), '"')
	return string(params), data, true
}

// lower returns b with ASCII letters in lower case, as a copy where that differs.
func lower(b []byte) []byte {
	for i, c := range b {
		if c-'A' < 26 {
			b = append([]byte(nil), b...)
			for ; i < len(b); i++ {
				if b[i]-'A' < 26 {
					b[i] += 'a' - 'A'
				}
			}
			break
		}
	}
	return b
}

// mediaTypeOfName guesses a media type from a file's name, "" when it does not say.
func mediaTypeOfName(name []byte) string {
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 {
		return ""
	}
	switch string(lower(name[dot+1:])) {
	case "pdf":
		return "application/pdf"
	case "txt", "md", "log":
		return "text/plain"
	case "csv":
		return "text/csv"
	case "html", "htm":
		return "text/html"
	case "json":
		return "application/json"
	case "xml":
		return "application/xml"
	case "doc":
		return "application/msword"
	case "docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case "xls":
		return "application/vnd.ms-excel"
	case "xlsx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	return ""
}
