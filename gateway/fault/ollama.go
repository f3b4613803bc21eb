package fault

import (
	"fmt"
	"strings"
	"time"
)

// ollamaDialect is Ollama's own /api/chat, whose streams are a JSON object a line.
var ollamaDialect = &dialect{
	chat: func(path string) (string, bool, bool) { return "", false, strings.HasSuffix(path, "/api/chat") },
	// The model and the wish for a stream are in the body, under OpenAI's names.
	tools:   "tools",
	voice:   func(who identity) voice { return &ollamaVoice{identity: who} },
	trouble: func(_ int, _ trouble, message string) (string, []string) { return ollamaError(message), nil },
	words: map[trouble]string{
		troubleAuth: "unauthorized", troubleNoModel: "model '%m' not found", troubleTooLong: "prompt too long; exceeded max context length",
		troubleOverloaded: "server busy, please try again.  maximum pending requests exceeded",
	},
	frame:       func(s sse) []byte { return []byte(s.data + "\n") },
	contentType: "application/x-ndjson",
}

func ollamaError(message string) string { return `{"error":` + quoted(message) + `}` }

// ollamaVoice speaks /api/chat. "done" is the line with the reason to finish and the counts.
type ollamaVoice struct {
	identity
	text, thinking strings.Builder
	calls          []string // as JSON
	finish         string
	count          usage
	failure        string
}

func (v *ollamaVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return nil
	case eventText, eventRefusal:
		v.text.WriteString(e.text)
		return v.line(`"content":`+quoted(e.text), `"done":false`)
	case eventReasoning:
		v.thinking.WriteString(e.text)
		return v.line(`"content":"","thinking":`+quoted(e.text), `"done":false`)
	case eventTool:
		id := ""
		if e.tool.id != "" {
			id = `"id":` + quoted(e.tool.id) + `,`
		}
		call := fmt.Sprintf(`{%s"function":{"index":%d,"name":%s,"arguments":%s}}`, id, len(v.calls), quoted(e.tool.name), e.tool.arguments)
		v.calls = append(v.calls, call)
		return v.line(`"content":"","tool_calls":[`+call+`]`, `"done":false`)
	case eventFinish:
		v.finish = e.text
		return nil
	case eventUsage:
		v.count = e.usage
		return nil
	case eventDone:
		return v.line(`"content":""`, v.end())
	case eventError:
		t, message := spoil(e.text)
		v.failure = ollamaError(ollamaDialect.says(t, message, v.model, 500))
		return []sse{{data: v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

func (v *ollamaVoice) line(message, rest string) []sse { return []sse{{data: v.object(message, rest)}} }

func (v *ollamaVoice) object(message, rest string) string {
	return `{` + v.modelField() + `"created_at":"` + time.Unix(v.created, 0).UTC().Format(time.RFC3339) +
		`","message":{"role":"assistant",` + message + `},` + rest + `}`
}

// end says why it ended and what was used. A call ends an answer as a stop does.
func (v *ollamaVoice) end() string {
	reason := "stop"
	if v.finish == "length" {
		reason = "length"
	}
	cached := ""
	if v.count.cached >= 0 {
		cached = fmt.Sprintf(`"prompt_eval_cached_count":%d,`, v.count.cached)
	}
	return fmt.Sprintf(`"done":true,"done_reason":"%s","total_duration":1000,"prompt_eval_count":%d,%s"eval_count":%d`,
		reason, v.count.prompt, cached, v.count.completion)
}

func (v *ollamaVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	message := `"content":` + quoted(v.text.String())
	if v.thinking.Len() > 0 {
		message += `,"thinking":` + quoted(v.thinking.String())
	}
	if len(v.calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(v.calls, ",") + `]`
	}
	return v.object(message, v.end())
}
