package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdkjson "github.com/interlock-gateway/interlock/sdk/go/json"
)

// answer is what a caller gets to know: a whole answer, or the chunks of one put together.
type answer struct {
	ID      string          `json:"id,omitempty"`
	Object  string          `json:"object"`
	Choices []*choice       `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Created json.Number     `json:"created,omitempty"`
	Model   string          `json:"model,omitempty"`
}

type choice struct {
	Index   int     `json:"index"`
	Message message `json:"message"`
	Finish  *string `json:"finish_reason"`
	begun   bool
}

type message struct {
	Role      string            `json:"role"`
	Content   *string           `json:"content"`
	Refusal   *string           `json:"refusal,omitempty"`
	Reasoning *string           `json:"reasoning_content,omitempty"`
	ToolCalls []toolCall        `json:"tool_calls,omitempty"`
	Data      []json.RawMessage `json:"provider_data,omitempty"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     *uint64 `json:"prompt_tokens"`
	Completion *uint64 `json:"completion_tokens"`
	Total      *uint64 `json:"total_tokens"`
	PromptHas  struct {
		Cached     uint64 `json:"cached_tokens"`
		CacheWrite uint64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionHas struct {
		Reasoning uint64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

var finishReasons = []string{"stop", "length", "tool_calls", "content_filter", "function_call"}

// readAnswer reads a whole chat.completion and says what is wrong with it.
func readAnswer(body string) (*answer, []string) {
	if !sdkjson.Valid([]byte(body)) {
		return nil, []string{"the answer is not JSON"}
	}
	a := &answer{}
	if err := json.Unmarshal([]byte(body), a); err != nil {
		return nil, []string{"the answer is not a chat.completion: " + err.Error()}
	}
	var wrong []string
	if a.Object != "chat.completion" {
		wrong = append(wrong, "object is "+a.Object)
	}
	for _, c := range a.Choices {
		if c.Message.Role != "assistant" {
			wrong = append(wrong, "a message without the role assistant")
		}
	}
	return a, append(wrong, a.check(true)...)
}

// check holds what is true of every answer; whole: and of one that has come to its end.
func (a *answer) check(whole bool) (wrong []string) {
	if a.ID == "" || a.Created == "" || a.Model == "" {
		wrong = append(wrong, "id, created or model is missing")
	}
	if whole && len(a.Choices) == 0 {
		wrong = append(wrong, "there is no choice")
	}
	for _, c := range a.Choices {
		switch {
		case c.Finish == nil:
			if whole {
				wrong = append(wrong, fmt.Sprintf("choice %d has no finish_reason", c.Index))
			}
		case !slices.Contains(finishReasons, *c.Finish):
			wrong = append(wrong, fmt.Sprintf("finish_reason %q is none of OpenAI's", *c.Finish))
		}
		for i, call := range c.Message.ToolCalls {
			if call.ID == "" || call.Function.Name == "" || call.Type != "function" {
				wrong = append(wrong, fmt.Sprintf("tool call %d lacks its id, name or type", i))
			}
			if c.Finish != nil && *c.Finish == "tool_calls" && !json.Valid([]byte(call.Function.Arguments)) {
				wrong = append(wrong, fmt.Sprintf("the arguments of tool call %d are not JSON: %q", i, call.Function.Arguments))
			}
		}
		if c.Finish != nil && *c.Finish == "tool_calls" && len(c.Message.ToolCalls) == 0 {
			wrong = append(wrong, "finish_reason tool_calls without a call")
		}
	}
	return append(wrong, checkUsage(a.Usage)...)
}

func checkUsage(raw json.RawMessage) []string {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var u usage
	if err := json.Unmarshal(raw, &u); err != nil {
		return []string{"usage: " + err.Error()}
	}
	if u.Prompt == nil || u.Completion == nil || u.Total == nil {
		return []string{"usage lacks prompt_tokens, completion_tokens or total_tokens"}
	}
	var wrong []string
	if *u.Total != *u.Prompt+*u.Completion {
		wrong = append(wrong, fmt.Sprintf("usage does not add up: %s", raw))
	}
	if u.PromptHas.Cached+u.PromptHas.CacheWrite > *u.Prompt {
		wrong = append(wrong, fmt.Sprintf("more tokens cached than there are in the prompt: %s", raw))
	}
	if u.CompletionHas.Reasoning > *u.Completion {
		wrong = append(wrong, fmt.Sprintf("more tokens of reasoning than there are in the completion: %s", raw))
	}
	return wrong
}

// assembly puts chunks together as a strict client does.
type assembly struct {
	answer
	wrong []string
	n     int
}

func (s *assembly) bad(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf("chunk %d: ", s.n)+fmt.Sprintf(format, args...))
}

func (s *assembly) choice(index int) *choice {
	for _, c := range s.Choices {
		if c.Index == index {
			return c
		}
	}
	c := &choice{Index: index}
	s.Choices = append(s.Choices, c)
	return c
}

func (s *assembly) add(f frame) {
	s.n++
	if f.name != "" {
		s.bad("the name is %q, and should be empty", f.name)
	}
	if strings.ContainsAny(f.data, "\r\n") {
		s.bad("a line feed")
	}
	if !sdkjson.Valid([]byte(f.data)) {
		s.bad("not JSON: %.200q", f.data)
		return
	}
	var c struct {
		answer
		Choices *[]struct {
			Index  *int    `json:"index"`
			Delta  message `json:"delta"`
			Finish *string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(f.data), &c); err != nil {
		s.bad("not a chat.completion.chunk: %v", err)
		return
	}
	if c.Object != "chat.completion.chunk" {
		s.bad("object is %q", c.Object)
	}
	if c.Choices == nil {
		s.bad("no choices")
		return
	}
	if s.n == 1 {
		s.ID, s.Created, s.Model = c.ID, c.Created, c.Model
	}
	if s.ID != c.ID || s.Created != c.Created || s.Model != c.Model {
		s.bad("id, created or model is not as in the first chunk")
	}
	if c.Usage != nil && string(c.Usage) != "null" {
		if s.Usage != nil {
			s.bad("usage for a second time")
		}
		if len(*c.Choices) > 0 {
			s.bad("usage and choices in one chunk")
		}
		s.Usage = c.Usage
	}
	for _, part := range *c.Choices {
		if part.Index == nil {
			s.bad("a choice without an index")
			continue
		}
		s.delta(s.choice(*part.Index), &part.Delta, part.Finish)
	}
}

func (s *assembly) delta(to *choice, d *message, finish *string) {
	m := &to.Message
	if to.Finish != nil {
		s.bad("choice %d goes on after its finish_reason", to.Index)
	}
	switch {
	case !to.begun && d.Role != "assistant":
		s.bad("choice %d begins without a role", to.Index)
	case to.begun && d.Role != "" && d.Role != m.Role:
		s.bad("choice %d changes its role", to.Index)
	}
	to.begun = true
	if d.Role != "" {
		m.Role = d.Role
	}
	join(&m.Content, d.Content)
	join(&m.Refusal, d.Refusal)
	join(&m.Reasoning, d.Reasoning)
	m.Data = append(m.Data, d.Data...)
	for _, part := range d.ToolCalls {
		switch {
		case part.Index == nil:
			s.bad("a part of a tool call without an index")
		case *part.Index == len(m.ToolCalls):
			if part.ID == "" || part.Function.Name == "" || part.Type != "function" {
				s.bad("tool call %d begins without its id, name or type", *part.Index)
			}
			part.Index = nil
			m.ToolCalls = append(m.ToolCalls, part)
		case *part.Index < 0 || *part.Index > len(m.ToolCalls):
			s.bad("tool call %d comes after %d", *part.Index, len(m.ToolCalls)-1)
		default:
			call := &m.ToolCalls[*part.Index]
			if part.ID != "" && part.ID != call.ID {
				s.bad("tool call %d changes its id", *part.Index)
			}
			call.Function.Arguments += part.Function.Arguments
		}
	}
	if finish != nil {
		to.Finish = finish
	}
}

func join(to **string, s *string) {
	if s == nil {
		return
	}
	if *to == nil {
		*to = new(string)
	}
	**to += *s
}

// result is the assembled answer and what is wrong with it.
func (s *assembly) result(whole bool) (*answer, []string) {
	s.Object = "chat.completion"
	slices.SortFunc(s.Choices, func(a, b *choice) int { return a.Index - b.Index })
	if s.n == 0 {
		return &s.answer, append(s.wrong, "nothing was emitted")
	}
	return &s.answer, append(s.wrong, s.answer.check(whole)...)
}
