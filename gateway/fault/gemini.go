package fault

import (
	"fmt"
	"net/http"
	"strings"
)

// geminiDialect is Google's generateContent and streamGenerateContent.
var geminiDialect = &dialect{
	chat: func(path string) (string, bool, bool) {
		if model, ok := between(path, "/models/", ":generateContent"); ok {
			return model, false, true
		}
		model, ok := between(path, "/models/", ":streamGenerateContent")
		return model, true, ok
	},
	tools: "tools",
	voice: func(who identity) voice { return &geminiVoice{identity: who} },
	trouble: func(status int, t trouble, message string) (string, []string) {
		return geminiError(status, t, message), nil
	},
	words: map[trouble]string{
		troubleNoModel: "models/%m is not found for API version v1beta", troubleTooLong: "The input token count exceeds the maximum number of tokens allowed",
	},
	contentType: "text/event-stream",
}

// geminiError is a google.rpc.Status.
func geminiError(status int, t trouble, message string) string {
	name, own := "INVALID_ARGUMENT", http.StatusBadRequest
	switch t {
	case troubleAuth:
		name, own = "UNAUTHENTICATED", http.StatusUnauthorized
	case troubleNoModel:
		name, own = "NOT_FOUND", http.StatusNotFound
	case troubleRateLimited:
		name, own = "RESOURCE_EXHAUSTED", http.StatusTooManyRequests
	case troubleOverloaded:
		name, own = "UNAVAILABLE", http.StatusServiceUnavailable
	case troubleServer:
		name, own = "INTERNAL", http.StatusInternalServerError
	case troubleTimeout:
		name, own = "DEADLINE_EXCEEDED", http.StatusGatewayTimeout
	}
	if status == 0 {
		status = own
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":"%s"}}`, status, quoted(message), name)
}

// geminiVoice speaks generateContent. Its stream has no mark at its end: "done" is the chunk with
// the reason to finish and the usage.
type geminiVoice struct {
	identity
	parts   []string // as JSON; texts that follow each other are one
	thought *bool    // of the last part, where it is a text
	text    strings.Builder
	finish  string
	count   usage
	failure string
}

func (v *geminiVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return nil
	case eventText, eventRefusal, eventReasoning:
		thought := e.kind == eventReasoning
		if v.thought == nil || *v.thought != thought {
			v.close()
			v.thought = &thought
		}
		v.text.WriteString(e.text)
		return v.chunk(geminiText(e.text, thought))
	case eventTool:
		v.close()
		id := ""
		if e.tool.id != "" {
			id = `"id":` + quoted(e.tool.id) + `,`
		}
		call := `{"functionCall":{` + id + `"name":` + quoted(e.tool.name) + `,"args":` + e.tool.arguments + `}}`
		v.parts = append(v.parts, call)
		return v.chunk(call)
	case eventFinish:
		v.finish = e.text
		return nil
	case eventUsage:
		v.count = e.usage
		return nil
	case eventDone:
		return []sse{{data: v.object("")}}
	case eventError:
		t, message := spoil(e.text)
		v.failure = geminiError(0, t, geminiDialect.says(t, message, v.model, http.StatusInternalServerError))
		return []sse{{data: v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

func geminiText(text string, thought bool) string {
	if thought {
		return `{"text":` + quoted(text) + `,"thought":true}`
	}
	return `{"text":` + quoted(text) + `}`
}

func (v *geminiVoice) close() {
	if v.thought != nil {
		v.parts = append(v.parts, geminiText(v.text.String(), *v.thought))
	}
	v.thought = nil
	v.text.Reset()
}

func (v *geminiVoice) chunk(part string) []sse {
	return []sse{{data: `{"candidates":[{"content":{"parts":[` + part + `],"role":"model"},"index":0}],"modelVersion":` + quoted(v.model) + `,"responseId":` + quoted(v.id) + `}`}}
}

// object is an answer that has ended.
func (v *geminiVoice) object(parts string) string {
	reason := map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}[v.finish]
	thoughts := max(v.count.reasoning, 0)
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":%s,"index":0}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},"modelVersion":%s,"responseId":%s}`,
		parts, quotedOrNull(reason), v.count.prompt, max(v.count.cached, 0), v.count.completion-thoughts, thoughts, v.count.prompt+v.count.completion, quoted(v.model), quoted(v.id))
}

func (v *geminiVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	v.close()
	return v.object(strings.Join(v.parts, ","))
}
