package fault

import (
	"fmt"
	"net/http"
	"strings"
)

// mistralDialect is Mistral's chat completions: OpenAI's format but for reasoning, which is a part
// of content, calls, which come whole, usage, which stands beside the finish, and errors.
var mistralDialect = &dialect{
	chat: func(path string) (string, bool, bool) {
		return "", false, strings.HasSuffix(path, "/chat/completions")
	},
	// The model and the wish for a stream are in the body, under OpenAI's names.
	tools: "tools",
	voice: func(who identity) voice { return &mistralVoice{identity: who} },
	trouble: func(status int, t trouble, message string) (string, []string) {
		return mistralError(status, t, message), nil
	},
	words: map[trouble]string{
		troubleNoModel: "Invalid model: %m",
		troubleTooLong: "Prompt contains 300000 tokens, too large for model with 131072 maximum context length",
	},
	contentType: "text/event-stream",
}

func mistralError(status int, t trouble, message string) string {
	kind, code, own := "invalid_request_invalid_args", "3051", http.StatusBadRequest
	switch t {
	case troubleAuth:
		return `{"detail":` + quoted(message) + `}`
	case troubleNoModel:
		kind, code = "invalid_model", "1500"
	case troubleRateLimited:
		kind, code, own = "rate_limited", "1300", http.StatusTooManyRequests
	case troubleOverloaded:
		kind, code, own = "service_tier_capacity_exceeded", "3505", http.StatusTooManyRequests
	case troubleServer:
		kind, code, own = "internal_server_error", "1000", http.StatusInternalServerError
	case troubleTimeout:
		kind, code, own = "internal_server_error", "1000", http.StatusGatewayTimeout
	}
	if status == 0 {
		status = own
	}
	return fmt.Sprintf(`{"object":"error","message":%s,"type":"%s","param":null,"code":"%s","raw_status_code":%d}`, quoted(message), kind, code, status)
}

// mistralVoice speaks Mistral's chat completions. "done" is the chunk with the reason to finish
// and the usage, and the mark behind it.
type mistralVoice struct {
	identity
	text, thoughts strings.Builder
	calls          []string // as JSON
	finish         string
	count          usage
	failure        string
}

func (v *mistralVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return v.delta(`{"role":"assistant","content":""}`)
	case eventText, eventRefusal:
		v.text.WriteString(e.text)
		return v.delta(`{"content":` + quoted(e.text) + `}`)
	case eventReasoning:
		v.thoughts.WriteString(e.text)
		return v.delta(`{"content":[` + mistralThought(e.text) + `]}`)
	case eventTool:
		return v.call(e.tool)
	case eventFinish:
		v.finish = e.text
		return nil
	case eventUsage:
		v.count = e.usage
		return nil
	case eventDone:
		choice := `{"index":0,"delta":{"content":""},"finish_reason":` + quotedOrNull(v.finish) + `}`
		return []sse{{data: envelope(v.identity, "chat.completion.chunk", choice, v.usage())}, {data: "[DONE]"}}
	case eventError:
		t, message := spoil(e.text)
		v.failure = mistralError(0, t, mistralDialect.says(t, message, v.model, http.StatusInternalServerError))
		return []sse{{data: v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

func mistralThought(text string) string {
	return `{"type":"thinking","thinking":[{"type":"text","text":` + quoted(text) + `}]}`
}

func (v *mistralVoice) delta(delta string) []sse {
	return []sse{{data: envelope(v.identity, "chat.completion.chunk", `{"index":0,"delta":`+delta+`,"finish_reason":null}`, "")}}
}

func (v *mistralVoice) call(t toolCall) []sse {
	i := len(v.calls)
	if t.id == "" {
		t.id = fmt.Sprintf("call%05d", i)
	}
	v.calls = append(v.calls, fmt.Sprintf(`{"id":%s,"function":{"name":%s,"arguments":%s},"index":%d}`, quoted(t.id), quoted(t.name), quoted(t.arguments), i))
	return v.delta(`{"tool_calls":[` + v.calls[i] + `]}`)
}

func (v *mistralVoice) usage() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`,
		v.count.prompt, v.count.prompt+v.count.completion, v.count.completion, max(v.count.cached, 0))
}

func (v *mistralVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	content := quoted(v.text.String())
	if v.thoughts.Len() > 0 {
		content = `[` + mistralThought(v.thoughts.String()) + `,{"type":"text","text":` + content + `}]`
	}
	calls := "null"
	if len(v.calls) > 0 {
		calls = `[` + strings.Join(v.calls, ",") + `]`
	}
	choice := `{"index":0,"finish_reason":` + quotedOrNull(v.finish) + `,"message":{"role":"assistant","tool_calls":` + calls + `,"content":` + content + `}}`
	return envelope(v.identity, "chat.completion", choice, v.usage())
}
