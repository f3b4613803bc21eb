package fault

import (
	"fmt"
	"net/http"
	"strings"
)

// cohereDialect is Cohere's chat of version 2.
var cohereDialect = &dialect{
	chat: func(path string) (string, bool, bool) { return "", false, strings.HasSuffix(path, "/v2/chat") },
	// The model and the wish for a stream are in the body, under OpenAI's names.
	tools: "tools",
	voice: func(who identity) voice { return &cohereVoice{identity: who} },
	trouble: func(_ int, t trouble, message string) (string, []string) {
		return cohereError(t, message), nil
	},
	words: map[trouble]string{
		troubleNoModel:     "model '%m' not found, make sure the correct model ID was used and that you have access to the model",
		troubleTooLong:     "too many tokens",
		troubleRateLimited: "token rate limit exceeded",
	},
	contentType: "text/event-stream",
}

func cohereError(t trouble, message string) string {
	kind := ""
	if t == troubleTooLong {
		kind = `"error_type":"TOO_MANY_TOKENS",`
	}
	return `{` + kind + `"id":"fault","message":` + quoted(message) + `}`
}

// cohereVoice speaks Cohere's chat. "done" is the event with the reason to finish and the usage,
// and the mark behind it.
type cohereVoice struct {
	identity
	blocks  []string // closed content blocks, as JSON
	kind    string   // of the open block, "" for none
	text    strings.Builder
	calls   []string // as JSON
	finish  string
	count   usage
	failure string
}

func (v *cohereVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return []sse{{"message-start", `{"id":` + quoted(v.id) + `,"type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`}}
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
		return nil
	case eventDone:
		end := `{"type":"message-end","delta":{"finish_reason":` + v.reason() + `,"usage":` + v.usage() + `}}`
		return append(v.close(), sse{"message-end", end}, sse{data: "[DONE]"})
	case eventError:
		t, message := spoil(e.text)
		v.failure = cohereError(t, cohereDialect.says(t, message, v.model, http.StatusInternalServerError))
		return []sse{{data: v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

// event is one that has an index and, but for ends, a message.
func (v *cohereVoice) event(kind string, index int, message string) sse {
	delta := ""
	if message != "" {
		delta = `,"delta":{"message":{` + message + `}}`
	}
	return sse{kind, fmt.Sprintf(`{"type":"%s","index":%d%s}`, kind, index, delta)}
}

func (v *cohereVoice) utter(kind, text string) (out []sse) {
	if v.kind != kind {
		out = v.close()
		v.kind = kind
		out = append(out, v.event("content-start", len(v.blocks), `"content":{"type":"`+kind+`","`+kind+`":""}`))
	}
	v.text.WriteString(text)
	return append(out, v.event("content-delta", len(v.blocks), `"content":{"`+kind+`":`+quoted(text)+`}`))
}

func (v *cohereVoice) close() []sse {
	if v.kind == "" {
		return nil
	}
	end := v.event("content-end", len(v.blocks), "")
	v.blocks = append(v.blocks, `{"type":"`+v.kind+`","`+v.kind+`":`+quoted(v.text.String())+`}`)
	v.kind = ""
	v.text.Reset()
	return []sse{end}
}

func (v *cohereVoice) call(t toolCall) []sse {
	out := v.close()
	i := len(v.calls)
	if t.id == "" {
		t.id = fmt.Sprintf("%s_%s%d", t.name, v.id, i)
	}
	head := `{"id":` + quoted(t.id) + `,"type":"function","function":{"name":` + quoted(t.name) + `,"arguments":`
	out = append(out, v.event("tool-call-start", i, `"tool_calls":`+head+`""}}`))
	for _, piece := range pieces(t.arguments, t.pieces) {
		out = append(out, v.event("tool-call-delta", i, `"tool_calls":{"function":{"arguments":`+quoted(piece)+`}}`))
	}
	v.calls = append(v.calls, head+quoted(t.arguments)+`}}`)
	return append(out, v.event("tool-call-end", i, ""))
}

func (v *cohereVoice) reason() string {
	return quotedOrNull(map[string]string{"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL", "content_filter": "ERROR_TOXIC"}[v.finish])
}

func (v *cohereVoice) usage() string {
	return fmt.Sprintf(`{"billed_units":{"input_tokens":%d,"output_tokens":%d},"tokens":{"input_tokens":%d,"output_tokens":%d},"cached_tokens":%d}`,
		v.count.prompt, v.count.completion, v.count.prompt, v.count.completion, max(v.count.cached, 0))
}

func (v *cohereVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	v.close()
	message := `{"role":"assistant"`
	if len(v.blocks) > 0 {
		message += `,"content":[` + strings.Join(v.blocks, ",") + `]`
	}
	if len(v.calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(v.calls, ",") + `]`
	}
	return `{"id":` + quoted(v.id) + `,"message":` + message + `},"finish_reason":` + v.reason() + `,"usage":` + v.usage() + `}`
}
