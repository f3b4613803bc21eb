package fault

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responseVoice speaks /v1/responses: the semantic events of a stream, or one
// response object. Opening and closing items and parts follows from what is
// said; "done" is the terminal event.
type responseVoice struct {
	identity
	sequence int
	items    []string      // finished output items, as JSON
	open     *responseItem // the item being said
	status   string        // "" is completed
	reason   string        // of an incomplete response
	usage    string
	failure  string
}

type itemKind string

const (
	itemText      itemKind = "output_text"
	itemRefusal   itemKind = "refusal"
	itemReasoning itemKind = "reasoning"
)

type responseItem struct {
	kind itemKind
	id   string
	text strings.Builder
}

func (v *responseVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return append(v.emit("response.created", `"response":`+v.object("in_progress")),
			v.emit("response.in_progress", `"response":`+v.object("in_progress"))...)
	case eventText:
		return v.utter(itemText, e.text)
	case eventRefusal:
		return v.utter(itemRefusal, e.text)
	case eventReasoning:
		return v.utter(itemReasoning, e.text)
	case eventTool:
		return v.call(e.tool)
	case eventFinish:
		v.finish(e.text)
		return v.closeItem()
	case eventUsage:
		v.usage = responseUsage(e.usage)
		return nil // it comes with the terminal event
	case eventDone:
		out := v.closeItem()
		status := v.finalStatus()
		return append(out, v.emit("response."+status, `"response":`+v.object(status))...)
	case eventError:
		v.failure = e.text
		return v.fail(e.text)
	default:
		return []sse{{data: e.text}}
	}
}

// emit numbers and names one event.
func (v *responseVoice) emit(kind, fields string) []sse {
	data := fmt.Sprintf(`{"type":"%s","sequence_number":%d,%s}`, kind, v.sequence, fields)
	v.sequence++
	return []sse{{name: kind, data: data}}
}

// fail is OpenAI's error event: the error's own fields flat, and the object.
func (v *responseVoice) fail(object string) []sse {
	var flat struct{ Code, Message, Param json.RawMessage }
	_ = json.Unmarshal([]byte(object), &flat) // an error that is no object has none of them
	field := func(raw json.RawMessage) string {
		if raw == nil {
			return "null"
		}
		return string(raw)
	}
	return v.emit("error", `"code":`+field(flat.Code)+`,"message":`+field(flat.Message)+`,"param":`+field(flat.Param)+`,"error":`+object)
}

// finish turns a finish reason into the response's status.
func (v *responseVoice) finish(reason string) {
	switch reason {
	case "length":
		v.status, v.reason = "incomplete", "max_output_tokens"
	case "content_filter":
		v.status, v.reason = "incomplete", "content_filter"
	case "failed":
		v.status = "failed"
	}
}

func (v *responseVoice) finalStatus() string {
	if v.status == "" {
		return "completed"
	}
	return v.status
}

// utter says text of one kind, opening an item where another kind was said
// before.
func (v *responseVoice) utter(kind itemKind, text string) []sse {
	var out []sse
	if v.open == nil || v.open.kind != kind {
		out = v.closeItem()
		out = append(out, v.openItem(kind)...)
	}
	v.open.text.WriteString(text)
	switch kind {
	case itemReasoning:
		return append(out, v.emit("response.reasoning_summary_text.delta", v.place("summary_index")+`,"delta":`+quoted(text))...)
	case itemRefusal:
		return append(out, v.emit("response.refusal.delta", v.place("content_index")+`,"delta":`+quoted(text))...)
	default:
		return append(out, v.emit("response.output_text.delta", v.place("content_index")+`,"delta":`+quoted(text)+`,"logprobs":[]`)...)
	}
}

// place says which item and part an event belongs to.
func (v *responseVoice) place(part string) string {
	return fmt.Sprintf(`"item_id":%s,"output_index":%d,"%s":0`, quoted(v.open.id), len(v.items), part)
}

func (v *responseVoice) openItem(kind itemKind) []sse {
	prefix := "msg"
	if kind == itemReasoning {
		prefix = "rs"
	}
	v.open = &responseItem{kind: kind, id: fmt.Sprintf("%s_%s_%d", prefix, v.id, len(v.items))}
	out := v.emit("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, len(v.items), v.open.item("in_progress", "")))
	if kind == itemReasoning {
		return append(out, v.emit("response.reasoning_summary_part.added", v.place("summary_index")+`,"part":{"type":"summary_text","text":""}`)...)
	}
	return append(out, v.emit("response.content_part.added", v.place("content_index")+`,"part":`+v.open.part(""))...)
}

func (v *responseVoice) closeItem() []sse {
	if v.open == nil {
		return nil
	}
	text := v.open.text.String()
	var out []sse
	switch v.open.kind {
	case itemReasoning:
		out = append(v.emit("response.reasoning_summary_text.done", v.place("summary_index")+`,"text":`+quoted(text)),
			v.emit("response.reasoning_summary_part.done", v.place("summary_index")+`,"part":{"type":"summary_text","text":`+quoted(text)+`}`)...)
	case itemRefusal:
		out = append(v.emit("response.refusal.done", v.place("content_index")+`,"refusal":`+quoted(text)),
			v.emit("response.content_part.done", v.place("content_index")+`,"part":`+v.open.part(text))...)
	default:
		out = append(v.emit("response.output_text.done", v.place("content_index")+`,"text":`+quoted(text)+`,"logprobs":[]`),
			v.emit("response.content_part.done", v.place("content_index")+`,"part":`+v.open.part(text))...)
	}
	status := "completed"
	if v.status == "incomplete" {
		status = "incomplete"
	}
	item := v.open.item(status, text)
	out = append(out, v.emit("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, len(v.items), item))...)
	v.items = append(v.items, item)
	v.open = nil
	return out
}

func (i *responseItem) part(text string) string {
	if i.kind == itemRefusal {
		return `{"type":"refusal","refusal":` + quoted(text) + `}`
	}
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quoted(text) + `}`
}

// item is the item as JSON; while in progress its content is empty.
func (i *responseItem) item(status, text string) string {
	inside := ""
	if i.kind == itemReasoning {
		if status != "in_progress" {
			inside = `{"type":"summary_text","text":` + quoted(text) + `}`
		}
		return fmt.Sprintf(`{"id":%s,"type":"reasoning","summary":[%s]}`, quoted(i.id), inside)
	}
	if status != "in_progress" {
		inside = i.part(text)
	}
	return fmt.Sprintf(`{"id":%s,"type":"message","status":"%s","content":[%s],"role":"assistant"}`, quoted(i.id), status, inside)
}

// call says a function call, an item of its own.
func (v *responseVoice) call(t toolCall) []sse {
	out := v.closeItem()
	index := len(v.items)
	id := fmt.Sprintf("fc_%s_%d", v.id, index)
	if t.id == "" {
		t.id = fmt.Sprintf("call_%s_%d", v.id, index)
	}
	item := func(status, arguments string) string {
		return fmt.Sprintf(`{"id":%s,"type":"function_call","status":"%s","arguments":%s,"call_id":%s,"name":%s}`,
			quoted(id), status, quoted(arguments), quoted(t.id), quoted(t.name))
	}
	where := fmt.Sprintf(`"item_id":%s,"output_index":%d`, quoted(id), index)
	out = append(out, v.emit("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item("in_progress", "")))...)
	for _, piece := range pieces(t.arguments, t.pieces) {
		out = append(out, v.emit("response.function_call_arguments.delta", where+`,"delta":`+quoted(piece))...)
	}
	out = append(out, v.emit("response.function_call_arguments.done", where+`,"arguments":`+quoted(t.arguments))...)
	done := item("completed", t.arguments)
	out = append(out, v.emit("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, done))...)
	v.items = append(v.items, done)
	return out
}

// object is the response object with what has been said so far.
func (v *responseVoice) object(status string) string {
	failure, incomplete, usage := "null", "null", "null"
	if status == "failed" {
		if failure = v.failure; failure == "" {
			failure = `{"code":"server_error","message":"The model failed to answer."}`
		}
	}
	if status == "incomplete" {
		incomplete = `{"reason":` + quoted(v.reason) + `}`
	}
	if v.usage != "" && status != "in_progress" {
		usage = v.usage
	}
	return fmt.Sprintf(`{"id":%s,"object":"response","created_at":%d,"status":"%s","error":%s,"incomplete_details":%s,"instructions":null,"metadata":{},%s"output":[%s],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":%s}`,
		quoted(v.id), v.created, status, failure, incomplete, v.modelField(), strings.Join(v.items, ","), usage)
}

func (v *responseVoice) body() string {
	if v.failure != "" && v.status != "failed" {
		return `{"error":` + v.failure + `}`
	}
	v.closeItem()
	return v.object(v.finalStatus())
}

func responseUsage(u usage) string {
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.prompt, max(u.cached, 0), u.completion, max(u.reasoning, 0), u.prompt+u.completion)
}
