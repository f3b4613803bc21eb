package plugintest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Message is an answer as a caller's SDK puts it together.
type Message struct {
	Text, Reasoning, Refusal string
	ToolCalls                []ToolCall
	ProviderData             []json.RawMessage
	Finish                   string
	Usage                    *Usage
}

// ToolCall is one call of a tool, its arguments joined.
type ToolCall struct{ ID, Name, Arguments string }

// Usage is OpenAI's.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Completed struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// said is a delta, or a whole message.
type said struct {
	Content      string            `json:"content"`
	Reasoning    string            `json:"reasoning_content"`
	Refusal      string            `json:"refusal"`
	ProviderData []json.RawMessage `json:"provider_data"`
	ToolCalls    []struct {
		Index    int
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// Wire is a chunk of a stream, or a whole answer.
type Wire struct {
	ID      string
	Choices []struct {
		Index          int
		Delta, Message said
		Finish         string `json:"finish_reason"`
	}
	Usage *Usage
}

// Assemble puts the chunks of one choice together, and sees to it that they are in order.
func Assemble(t *testing.T, chunks []string) (m Message) {
	t.Helper()
	for _, text := range chunks {
		var w Wire
		require.NoError(t, json.Unmarshal([]byte(text), &w), text)
		if w.Usage != nil {
			require.Nil(t, m.Usage, "usage comes twice")
			require.Empty(t, w.Choices)
			m.Usage = w.Usage
		}
		for _, c := range w.Choices {
			require.Empty(t, m.Finish, "something follows the finish")
			m.Text += c.Delta.Content
			m.Reasoning += c.Delta.Reasoning
			m.Refusal += c.Delta.Refusal
			m.ProviderData = append(m.ProviderData, c.Delta.ProviderData...)
			for _, call := range c.Delta.ToolCalls {
				if call.ID != "" {
					require.Len(t, m.ToolCalls, call.Index)
					m.ToolCalls = append(m.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name})
				}
				m.ToolCalls[call.Index].Arguments += call.Function.Arguments
			}
			m.Finish = c.Finish
		}
	}
	return m
}

// ReadWhole reads a whole answer of one choice.
func ReadWhole(t *testing.T, text string) (m Message) {
	t.Helper()
	var w Wire
	require.NoError(t, json.Unmarshal([]byte(text), &w), text)
	require.Len(t, w.Choices, 1)
	c := w.Choices[0]
	m = Message{
		Text: c.Message.Content, Reasoning: c.Message.Reasoning, Refusal: c.Message.Refusal,
		ProviderData: c.Message.ProviderData, Finish: c.Finish, Usage: w.Usage,
	}
	for _, call := range c.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{call.ID, call.Function.Name, call.Function.Arguments})
	}
	return m
}
