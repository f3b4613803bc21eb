package fault

import (
	"fmt"
	"net/http"
	"strings"
)

// anthropicDialect is Anthropic's Messages API.
var anthropicDialect = &dialect{
	chat: func(path string) (string, bool, bool) { return "", false, strings.HasSuffix(path, "/messages") },
	// The model and the wish for a stream are in the body, under OpenAI's names.
	tools: "tools",
	voice: func(who identity) voice { return &anthropicVoice{identity: who} },
	trouble: func(status int, t trouble, message string) (string, []string) {
		return anthropicError(anthropicType(status, t), message), nil
	},
	words: map[trouble]string{
		troubleNoModel: "model: %m", troubleTooLong: "prompt is too long", troubleFiltered: "Output blocked by content filtering policy",
	},
	contentType: "text/event-stream",
}

func anthropicType(status int, t trouble) string {
	switch t {
	case troubleAuth:
		if status == http.StatusPaymentRequired {
			return "billing_error"
		}
		return "authentication_error"
	case troubleNoModel:
		return "not_found_error"
	case troubleRateLimited:
		return "rate_limit_error"
	case troubleOverloaded:
		return "overloaded_error"
	case troubleServer:
		return "api_error"
	case troubleTimeout:
		return "timeout_error"
	default:
		return "invalid_request_error"
	}
}

func anthropicError(kind, message string) string {
	return `{"type":"error","error":{"type":` + quoted(kind) + `,"message":` + quoted(message) + `},"request_id":"req_fault"}`
}

// anthropicVoice speaks /v1/messages.
type anthropicVoice struct {
	identity
	blocks  []string // closed content blocks, as JSON
	kind    string   // of the open block, "" for none
	text    strings.Builder
	finish  string
	count   usage
	failure string
}

func (v *anthropicVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return v.emit("message_start", `"message":`+v.message(`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}`))
	case eventText, eventRefusal:
		return v.utter("text", e.text)
	case eventReasoning:
		return v.utter("thinking", e.text)
	case eventTool:
		return v.call(e.tool)
	case eventFinish:
		v.finish = e.text
		return v.close()
	case eventUsage:
		v.count = e.usage
		return nil // it comes with the reason to stop
	case eventDone:
		out := append(v.close(), v.emit("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%s,"stop_sequence":null},"usage":%s`, v.reason(), v.usage()))...)
		return append(out, v.emit("message_stop", "")...)
	case eventError:
		t, message := spoil(e.text)
		v.failure = anthropicError(anthropicType(0, t), anthropicDialect.says(t, message, v.model, http.StatusInternalServerError))
		return []sse{{name: "error", data: v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

func (v *anthropicVoice) emit(kind, fields string) []sse {
	if fields != "" {
		fields = "," + fields
	}
	return []sse{{name: kind, data: `{"type":"` + kind + `"` + fields + `}`}}
}

func (v *anthropicVoice) message(rest string) string {
	return `{"id":` + quoted(v.id) + `,"type":"message","role":"assistant",` + v.modelField() + rest + `}`
}

func (v *anthropicVoice) utter(kind, text string) (out []sse) {
	if v.kind != kind {
		out = append(v.close(), v.emit("content_block_start", fmt.Sprintf(`"index":%d,"content_block":{"type":"%s","%s":""}`, len(v.blocks), kind, kind))...)
		v.kind = kind
	}
	v.text.WriteString(text)
	return append(out, v.emit("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"%s_delta","%s":%s}`, len(v.blocks), kind, kind, quoted(text)))...)
}

func (v *anthropicVoice) close() []sse {
	if v.kind == "" {
		return nil
	}
	out := v.emit("content_block_stop", fmt.Sprintf(`"index":%d`, len(v.blocks)))
	v.blocks = append(v.blocks, fmt.Sprintf(`{"type":"%s","%s":%s}`, v.kind, v.kind, quoted(v.text.String())))
	v.kind = ""
	v.text.Reset()
	return out
}

func (v *anthropicVoice) call(t toolCall) []sse {
	out := v.close()
	i := len(v.blocks)
	if t.id == "" {
		t.id = fmt.Sprintf("toolu_%s_%d", v.id, i)
	}
	head := fmt.Sprintf(`"type":"tool_use","id":%s,"name":%s`, quoted(t.id), quoted(t.name))
	out = append(out, v.emit("content_block_start", fmt.Sprintf(`"index":%d,"content_block":{%s,"input":{}}`, i, head))...)
	for _, piece := range pieces(t.arguments, t.pieces) {
		out = append(out, v.emit("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"input_json_delta","partial_json":%s}`, i, quoted(piece)))...)
	}
	v.blocks = append(v.blocks, `{`+head+`,"input":`+t.arguments+`}`)
	return append(out, v.emit("content_block_stop", fmt.Sprintf(`"index":%d`, i))...)
}

func (v *anthropicVoice) reason() string {
	return quotedOrNull(map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}[v.finish])
}

// usage counts the cached tokens beside the input.
func (v *anthropicVoice) usage() string {
	cached := max(v.count.cached, 0)
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d}`,
		v.count.prompt-cached, cached, v.count.completion)
}

func (v *anthropicVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	v.close()
	return v.message(`"content":[` + strings.Join(v.blocks, ",") + `],"stop_reason":` + v.reason() + `,"stop_sequence":null,"usage":` + v.usage())
}
