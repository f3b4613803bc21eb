package chat

import (
	"bytes"

	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// messages reads the list at hand, of a body of so many bytes.
func (rd *reader) messages(size int) {
	if rd.w.Kind() != json.Array {
		rd.must(json.Array, rd.w.Value(), "messages")
		return
	}
	rd.r.Messages = make([]Message, 0, min(size/100+2, 256))
	rd.list, rd.index = "messages", 0
	for rd.w.Array(); rd.w.Item(); rd.index++ {
		if !rd.w.Object() {
			rd.bad("", "must be an object")
			return
		}
		rd.r.Messages = append(rd.r.Messages, Message{})
		rd.what = ""
		if rd.message(&rd.r.Messages[rd.index]); rd.err != nil {
			return
		}
	}
	if rd.list = ""; len(rd.r.Messages) == 0 {
		rd.bad("messages", "must not be empty")
	}
}

// message reads the members of a message that was entered.
func (rd *reader) message(m *Message) {
	var role, content, calls, data json.Value
	for rd.w.Member() {
		key := rd.w.Key
		switch v := rd.w.Value(); string(key) {
		case "role":
			role = v
		case "content":
			content = v
		case "name":
			m.Name = rd.want(json.String, v, ".name")
		case "tool_call_id":
			m.ToolCallID = v
		case "tool_calls":
			calls = rd.want(json.Array, v, ".tool_calls")
		case "refusal":
			m.Refusal = rd.want(json.String, v, ".refusal")
		case "reasoning_content":
			m.Reasoning = rd.want(json.String, v, ".reasoning_content")
		case "provider_data":
			data = rd.want(json.Array, v, ".provider_data")
		case "function_call":
			if !v.IsNull() {
				rd.unsupported(".function_call", "function_call is not supported: use tool_calls")
			}
		}
	}
	if m.Role = rd.role(role); m.Role == 0 {
		return
	}
	rd.content(m, content)
	if m.Role == ToolRole {
		m.ToolCallID = rd.must(json.String, m.ToolCallID, ".tool_call_id")
	} else {
		m.ToolCallID = nil
	}
	if m.Role != Assistant {
		m.Refusal, m.Reasoning = nil, nil
		return
	}
	rd.calls(m, calls)
	for item := range data.Items() {
		if rd.want(json.Object, item, ".provider_data") == nil {
			rd.bad(".provider_data", "must be an array of objects")
			return
		}
		m.ProviderData = append(m.ProviderData, item)
	}
}

func (rd *reader) role(v json.Value) Role {
	v = rd.must(json.String, v, ".role")
	switch word := v.Text(); string(word) {
	case "system":
		return System
	case "developer":
		return Developer
	case "user":
		return User
	case "assistant":
		return Assistant
	case "tool":
		return ToolRole
	case "function":
		rd.unsupported(".role", "the role function is not supported: use tool")
	default:
		rd.bad(".role", `must be "system", "developer", "user", "assistant" or "tool"`)
	}
	return 0
}

// onePart takes room for a part.
func (rd *reader) onePart() []Part {
	n := len(rd.parts)
	if n == cap(rd.parts) {
		n = 0
		rd.parts = make([]Part, 0, max(2, min(2*cap(rd.parts), 32)))
	}
	rd.parts = rd.parts[:n+1]
	return rd.parts[n : n+1 : n+1]
}

func (rd *reader) content(m *Message, v json.Value) {
	switch v.Kind() {
	case json.Absent, json.Null:
		if m.Role != Assistant {
			rd.bad(".content", "is missing")
		}
	case json.String:
		m.Parts = rd.onePart()
		m.Parts[0].Kind, m.Parts[0].Text = Text, v
	case json.Array:
		rd.at = 0
		for p := range v.Items() {
			if rd.at == 0 {
				m.Parts = rd.onePart()
			} else {
				m.Parts = append(m.Parts, Part{})
			}
			rd.what = ".content"
			rd.part(&m.Parts[rd.at], p, m.Role)
			if rd.err != nil {
				return
			}
			rd.at++
		}
		rd.what = ""
	default:
		rd.bad(".content", "must be a string or an array")
	}
}

func (rd *reader) part(p *Part, v json.Value, role Role) {
	if !v.IsObject() {
		rd.bad("", "must be an object")
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
	kind = rd.must(json.String, kind, ".type")
	user := role == User || role == ToolRole
	switch {
	case kind == nil:
	case kind.Is("text"):
		p.Kind, p.Text = Text, rd.text(text, ".text")
	case kind.Is("refusal") && role == Assistant:
		p.Kind, p.Text = Text, rd.text(refusal, ".refusal")
	case kind.Is("image_url") && user:
		rd.image(p, image)
	case kind.Is("file") && user:
		rd.file(p, file)
	case kind.Is("input_audio") && user:
		rd.audio(p, audio)
	default:
		rd.bad(".type", "is not a type of content that this role may have")
	}
}

// text wants a string that may be empty.
func (rd *reader) text(v json.Value, tail string) json.Value {
	if v.IsNull() {
		rd.bad(tail, "is missing")
	}
	return rd.want(json.String, v, tail)
}

func (rd *reader) image(p *Part, v json.Value) {
	p.Kind = Image
	url := v
	if v.Kind() != json.String { // some clients write the URL itself
		v = rd.must(json.Object, v, ".image_url")
		url = v.Get("url")
		p.Detail = rd.want(json.String, v.Get("detail"), ".image_url.detail")
	}
	if url = rd.must(json.String, url, ".image_url.url"); url == nil {
		return
	}
	var isData bool
	if p.MediaType, p.Data, isData = rd.dataURL(url, ".image_url.url"); !isData {
		p.URL = url
	}
}

func (rd *reader) file(p *Part, v json.Value) {
	p.Kind = File
	v = rd.must(json.Object, v, ".file")
	p.FileID = rd.want(json.String, v.Get("file_id"), ".file.file_id")
	p.FileName = rd.want(json.String, v.Get("filename"), ".file.filename")
	data := rd.want(json.String, v.Get("file_data"), ".file.file_data")
	switch {
	case rd.err != nil:
	case data == nil && p.FileID == nil:
		rd.bad(".file", "needs file_data or file_id")
	case data != nil:
		var isData bool
		if p.MediaType, p.Data, isData = rd.dataURL(data, ".file.file_data"); !isData {
			p.Data = data
		}
		if p.MediaType == "" {
			p.MediaType = mediaTypeOfName(p.FileName.Text())
		}
	}
}

func (rd *reader) audio(p *Part, v json.Value) {
	p.Kind = Audio
	v = rd.must(json.Object, v, ".input_audio")
	p.Data = rd.must(json.String, v.Get("data"), ".input_audio.data")
	p.Format = rd.must(json.String, v.Get("format"), ".input_audio.format")
	switch format := p.Format.Text(); string(format) {
	case "":
	case "mp3":
		p.MediaType = "audio/mpeg"
	default:
		p.MediaType = "audio/" + string(lower(format))
	}
}

func (rd *reader) calls(m *Message, v json.Value) {
	rd.at = 0
	for c := range v.Items() {
		rd.what = ".tool_calls"
		if !c.IsObject() {
			rd.bad("", "must be an object")
			return
		}
		if kind := c.Get("type"); !kind.IsNull() && !kind.Is("function") {
			rd.unsupported(".type", "only calls of type function are supported")
			return
		}
		f := rd.must(json.Object, c.Get("function"), ".function")
		call := ToolCall{
			ID:        rd.must(json.String, c.Get("id"), ".id"),
			Name:      rd.must(json.String, f.Get("name"), ".function.name"),
			Arguments: rd.want(json.String, f.Get("arguments"), ".function.arguments"),
		}
		if call.Arguments == nil {
			call.Arguments = json.Value(`""`)
		}
		if rd.err != nil {
			return
		}
		m.ToolCalls = append(m.ToolCalls, call)
		rd.at++
	}
	rd.what = ""
}

// dataURL takes a data: URL apart. data is a string of its own. isData is false when the URL is
// another; a data: URL that does not say base64 is an error.
func (rd *reader) dataURL(url json.Value, tail string) (mediaType string, data json.Value, isData bool) {
	raw := url.Contents()
	if len(raw) < 5 || string(lower(raw[:5])) != "data:" {
		return "", nil, false
	}
	comma := bytes.IndexByte(raw, ',')
	if comma < 0 {
		rd.bad(tail, "is not a data: URL: there is no comma")
		return "", nil, true
	}
	head := make([]byte, 0, comma+2)
	head = append(append(append(head, '"'), raw[:comma]...), '"')
	params := lower(json.Value(head).Text()[5:])
	params, isBase64 := bytes.CutSuffix(params, []byte(";base64"))
	if !isBase64 {
		rd.bad(tail, "is not a data: URL with base64")
		return "", nil, true
	}
	if k := bytes.IndexByte(params, ';'); k >= 0 {
		params = params[:k]
	}
	raw = raw[comma+1:]
	if len(raw) == 0 {
		rd.bad(tail, "is a data: URL without data")
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
