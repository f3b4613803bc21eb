package fault

import (
	"fmt"
	"strconv"
	"strings"
)

// chatVoice speaks /v1/chat/completions.
type chatVoice struct {
	identity
	choices []*chatChoice // by index
	usage   string
	failure string // an error object under 200, as JSON
}

type chatChoice struct {
	text, reasoning, refusal strings.Builder
	said                     bool // text was said, though it may be empty
	tools                    []toolCall
	finish                   string
}

func (v *chatVoice) choice(i int) *chatChoice {
	for len(v.choices) <= i {
		v.choices = append(v.choices, &chatChoice{})
	}
	return v.choices[i]
}

func (v *chatVoice) say(e event) []sse {
	c := v.choice(e.choice)
	switch e.kind {
	case eventRole:
		return v.delta(e.choice, `{"role":"assistant","content":""}`)
	case eventText:
		c.said = true
		c.text.WriteString(e.text)
		return v.delta(e.choice, `{"content":`+quoted(e.text)+`}`)
	case eventReasoning:
		c.reasoning.WriteString(e.text)
		return v.delta(e.choice, `{"reasoning_content":`+quoted(e.text)+`}`)
	case eventRefusal:
		c.refusal.WriteString(e.text)
		return v.delta(e.choice, `{"refusal":`+quoted(e.text)+`}`)
	case eventTool:
		return v.tool(c, e)
	case eventDelta:
		return v.delta(e.choice, e.text)
	case eventFinish:
		c.finish = e.text
		return v.chunk(fmt.Sprintf(`{"index":%d,"delta":{},"finish_reason":%s}`, e.choice, quoted(e.text)), "")
	case eventUsage:
		v.usage = chatUsage(e.usage)
		return v.chunk("", v.usage)
	case eventDone:
		return []sse{{data: "[DONE]"}}
	case eventError:
		v.failure = e.text
		return []sse{{data: `{"error":` + e.text + `}`}}
	default:
		return []sse{{data: e.text}}
	}
}

// tool gives a call as a first delta with its name and one for each piece of
// its arguments.
func (v *chatVoice) tool(c *chatChoice, e event) []sse {
	index := len(c.tools)
	if e.tool.id == "" {
		e.tool.id = fmt.Sprintf("call_%s_%d", v.id, index)
	}
	c.tools = append(c.tools, e.tool)
	out := v.delta(e.choice, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`,
		index, quoted(e.tool.id), quoted(e.tool.name)))
	for _, piece := range pieces(e.tool.arguments, e.tool.pieces) {
		out = append(out, v.delta(e.choice, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, index, quoted(piece)))...)
	}
	return out
}

func (v *chatVoice) delta(choice int, delta string) []sse {
	return v.chunk(`{"index":`+strconv.Itoa(choice)+`,"delta":`+delta+`,"finish_reason":null}`, "")
}

func (v *chatVoice) chunk(choices, usage string) []sse {
	return []sse{{data: envelope(v.identity, "chat.completion.chunk", choices, usage)}}
}

// envelope is the object that chat and completions share.
func envelope(i identity, object, choices, usage string) string {
	s := `{"id":` + quoted(i.id) + `,"object":"` + object + `","created":` + strconv.FormatInt(i.created, 10) + `,` +
		i.modelField() + `"choices":[` + choices + `]`
	if usage != "" {
		s += `,"usage":` + usage
	}
	return s + `}`
}

func (v *chatVoice) body() string {
	if v.failure != "" {
		return `{"error":` + v.failure + `}`
	}
	var choices []string
	for i, c := range v.choices {
		choices = append(choices, fmt.Sprintf(`{"index":%d,"message":%s,"finish_reason":%s}`, i, c.message(), quotedOrNull(c.finish)))
	}
	return envelope(v.identity, "chat.completion", strings.Join(choices, ","), v.usage)
}

func (c *chatChoice) message() string {
	var b strings.Builder
	b.WriteString(`{"role":"assistant","content":`)
	if c.said {
		b.WriteString(quoted(c.text.String()))
	} else {
		b.WriteString("null")
	}
	if c.reasoning.Len() > 0 {
		b.WriteString(`,"reasoning_content":` + quoted(c.reasoning.String()))
	}
	if c.refusal.Len() > 0 {
		b.WriteString(`,"refusal":` + quoted(c.refusal.String()))
	}
	for i, t := range c.tools {
		b.WriteString([]string{`,"tool_calls":[`, `,`}[min(i, 1)])
		fmt.Fprintf(&b, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quoted(t.id), quoted(t.name), quoted(t.arguments))
	}
	if len(c.tools) > 0 {
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.String()
}

func quotedOrNull(s string) string {
	if s == "" {
		return "null"
	}
	return quoted(s)
}

func chatUsage(u usage) string {
	s := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d`, u.prompt, u.completion, u.prompt+u.completion)
	if u.cached >= 0 {
		s += fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, u.cached)
	}
	if u.reasoning >= 0 {
		s += fmt.Sprintf(`,"completion_tokens_details":{"reasoning_tokens":%d}`, u.reasoning)
	}
	return s + `}`
}

// completionVoice speaks /v1/completions.
type completionVoice struct {
	identity
	choices []*completionChoice
	usage   string
	failure string
}

type completionChoice struct {
	text   strings.Builder
	finish string
}

func (v *completionVoice) say(e event) []sse {
	for len(v.choices) <= e.choice {
		v.choices = append(v.choices, &completionChoice{})
	}
	c := v.choices[e.choice]
	switch e.kind {
	case eventText:
		c.text.WriteString(e.text)
		return v.chunk(e.choice, e.text, "")
	case eventFinish:
		c.finish = e.text
		return v.chunk(e.choice, "", e.text)
	case eventUsage:
		v.usage = chatUsage(e.usage)
		return []sse{{data: envelope(v.identity, "text_completion", "", v.usage)}}
	case eventDone:
		return []sse{{data: "[DONE]"}}
	case eventError:
		v.failure = e.text
		return []sse{{data: `{"error":` + e.text + `}`}}
	case eventData:
		return []sse{{data: e.text}}
	default:
		return nil // this endpoint has no role, and the compiler refuses the rest
	}
}

func (v *completionVoice) chunk(choice int, text, finish string) []sse {
	return []sse{{data: envelope(v.identity, "text_completion", completionJSON(choice, text, finish), "")}}
}

func completionJSON(choice int, text, finish string) string {
	return fmt.Sprintf(`{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}`, quoted(text), choice, quotedOrNull(finish))
}

func (v *completionVoice) body() string {
	if v.failure != "" {
		return `{"error":` + v.failure + `}`
	}
	var choices []string
	for i, c := range v.choices {
		choices = append(choices, completionJSON(i, c.text.String(), c.finish))
	}
	return envelope(v.identity, "text_completion", strings.Join(choices, ","), v.usage)
}
