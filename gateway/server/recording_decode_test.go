package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// heard is what a caller makes of an answer. The decoder below is a plain one of its own, so that
// the gateway's reading of the wire format is not checked with itself.
type heard struct {
	text, reasoning, finish string
	calls                   []heardCall
	usage                   map[string]any
	usages                  int
	err                     map[string]any
	done                    bool
	items                   int    // choices, or elements of data
	streamed                string // the text of a responses stream's deltas
}

type heardCall struct{ id, name, arguments string }

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
func text(v any) string           { s, _ := v.(string); return s }
func count(v any) int64           { f, _ := v.(float64); return int64(f) }

// hearAnswer reads a whole JSON answer.
func hearAnswer(body, endpoint string) (*heard, error) {
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return nil, err
	}
	h := &heard{usage: object(v["usage"]), err: object(v["error"])}
	switch endpoint {
	case "responses":
		h.hearResponse(v)
	case "embeddings":
		h.items = len(list(v["data"]))
	default:
		h.items = len(list(v["choices"]))
		for _, c := range list(v["choices"]) {
			if choice := object(c); count(choice["index"]) == 0 {
				h.text += text(choice["text"])
				h.finish = text(choice["finish_reason"])
				h.hearMessage(object(choice["message"]))
			}
		}
	}
	return h, nil
}

// hearMessage reads a chat message; content may be a list, as some providers send it.
func (h *heard) hearMessage(m map[string]any) {
	h.text += text(m["content"])
	for _, p := range list(m["content"]) {
		part := object(p)
		h.text += text(part["text"])
		for _, q := range list(part["thinking"]) {
			h.reasoning += text(object(q)["text"])
		}
	}
	if r := text(m["reasoning_content"]); r != "" {
		h.reasoning += r
	} else {
		h.reasoning += text(m["reasoning"])
	}
	for _, c := range list(m["tool_calls"]) {
		f := object(object(c)["function"])
		h.calls = append(h.calls, heardCall{text(object(c)["id"]), text(f["name"]), text(f["arguments"])})
	}
}

// hearResponse reads a response object of the responses endpoint.
func (h *heard) hearResponse(v map[string]any) {
	h.text, h.reasoning, h.calls = "", "", nil
	h.usage, h.err = object(v["usage"]), object(v["error"])
	for _, o := range list(v["output"]) {
		item := object(o)
		h.items++
		switch text(item["type"]) {
		case "message":
			for _, c := range list(item["content"]) {
				if text(object(c)["type"]) == "output_text" {
					h.text += text(object(c)["text"])
				}
			}
		case "reasoning":
			for _, s := range append(list(item["summary"]), list(item["content"])...) {
				h.reasoning += text(object(s)["text"])
			}
		case "function_call":
			h.calls = append(h.calls, heardCall{text(item["call_id"]), text(item["name"]), text(item["arguments"])})
		}
	}
	switch text(v["status"]) {
	case "completed":
		h.finish = "stop"
		if len(h.calls) > 0 {
			h.finish = "tool_calls"
		}
	case "incomplete":
		h.finish = "length"
		if text(object(v["incomplete_details"])["reason"]) == "content_filter" {
			h.finish = "content_filter"
		}
	}
}

// hearStream reads an SSE body whose events have one data line each, as simple clients do.
func hearStream(body, endpoint string) (*heard, error) {
	h := &heard{}
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r"), "data:")
		if !ok {
			continue
		}
		if data = strings.TrimSpace(data); data == "[DONE]" {
			h.done = true
			continue
		}
		if h.done {
			return nil, fmt.Errorf("an event after [DONE]: %s", data)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return nil, fmt.Errorf("%w in %q", err, data)
		}
		if endpoint != "responses" {
			if err := h.hearChunk(v); err != nil {
				return nil, err
			}
			continue
		}
		switch text(v["type"]) {
		case "response.output_text.delta":
			h.streamed += text(v["delta"])
		case "response.completed", "response.incomplete", "response.failed":
			h.hearResponse(object(v["response"]))
			h.done = true
		}
	}
	return h, nil
}

// hearChunk reads a chunk as a typed SDK does: text is a string, a tool call has an index.
func (h *heard) hearChunk(v map[string]any) error {
	if e := object(v["error"]); e != nil {
		h.err = e
		return nil
	}
	if u := object(v["usage"]); u != nil {
		if len(list(v["choices"])) > 0 {
			return fmt.Errorf("usage beside choices: %v", v)
		}
		h.usage = u
		h.usages++
	}
	for _, c := range list(v["choices"]) {
		choice := object(c)
		if count(choice["index"]) != 0 {
			continue
		}
		h.items++
		h.text += text(choice["text"])
		if f := text(choice["finish_reason"]); f != "" {
			h.finish = f
		}
		delta := object(choice["delta"])
		if _, isList := delta["content"].([]any); isList {
			return fmt.Errorf("a delta whose content is a list: %v", delta)
		}
		calls := list(delta["tool_calls"])
		delete(delta, "tool_calls")
		h.hearMessage(delta)
		for _, c := range calls {
			call := object(c)
			i, ok := call["index"].(float64)
			if !ok {
				return fmt.Errorf("a tool call without an index: %v", call)
			}
			for len(h.calls) <= int(i) {
				h.calls = append(h.calls, heardCall{})
			}
			f := object(call["function"])
			h.calls[int(i)].id += text(call["id"])
			h.calls[int(i)].name += text(f["name"])
			h.calls[int(i)].arguments += text(f["arguments"])
		}
	}
	return nil
}

// tokens reads usage in OpenAI's convention whatever the endpoint: cached inside prompt,
// reasoning inside completion (some providers count reasoning only in the total).
func (h *heard) tokens() (prompt, completion, cached, reasoning int64) {
	u := h.usage
	prompt, completion = count(u["prompt_tokens"])+count(u["input_tokens"]), count(u["completion_tokens"])+count(u["output_tokens"])
	for _, k := range []string{"prompt_tokens_details", "input_tokens_details"} {
		cached = max(cached, count(object(u[k])["cached_tokens"]))
	}
	cached = max(cached, count(u["prompt_cache_hit_tokens"]), count(u["num_cached_tokens"]), count(u["cached_tokens"]))
	for _, k := range []string{"completion_tokens_details", "output_tokens_details"} {
		reasoning = max(reasoning, count(object(u[k])["reasoning_tokens"]))
	}
	reasoning = max(reasoning, count(u["reasoning_tokens"]))
	if total := count(u["total_tokens"]); reasoning > 0 && total == prompt+completion+reasoning {
		completion = total - prompt
	}
	return prompt, completion, cached, reasoning
}

// needsRepair says whether a whole chat answer is one of those that a typed SDK or a count would
// stumble over, so that the gateway may not pass it byte for byte: content that is a list, a tool
// call without a type, a finish reason OpenAI has no word for, reasoning left out of the
// completion's count.
func needsRepair(body []byte) bool {
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return false
	}
	for _, c := range list(v["choices"]) {
		switch text(object(c)["finish_reason"]) {
		case "", "stop", "length", "tool_calls", "content_filter", "function_call":
		default:
			return true
		}
		m := object(object(c)["message"])
		if _, isList := m["content"].([]any); isList {
			return true
		}
		for _, call := range list(m["tool_calls"]) {
			if object(call)["type"] == nil {
				return true
			}
		}
	}
	h := &heard{usage: object(v["usage"])}
	_, completion, _, _ := h.tokens()
	return completion != count(h.usage["completion_tokens"])+count(h.usage["output_tokens"])
}
