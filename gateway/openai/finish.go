package openai

// The finish reasons that a caller may get. Responses tell theirs in other words; they are mapped.
const (
	finishStop          = "stop"
	finishLength        = "length"
	finishToolCalls     = "tool_calls"
	finishContentFilter = "content_filter"
	finishFunctionCall  = "function_call"
)

// finishWord finds OpenAI's word for a finish reason. same says that it was OpenAI's already;
// known is false for a reason that says nothing about a finished answer ("error", and what nobody
// documents).
func finishWord(raw []byte) (word string, same, known bool) {
	switch string(raw) {
	case finishStop:
		return finishStop, true, true
	case finishLength:
		return finishLength, true, true
	case finishToolCalls:
		return finishToolCalls, true, true
	case finishContentFilter:
		return finishContentFilter, true, true
	case finishFunctionCall:
		return finishFunctionCall, true, true
	case "eos", "end_turn", "stop_sequence", "STOP", "COMPLETE":
		return finishStop, false, true
	case "model_length", "max_tokens", "model_context_window_exceeded", "MAX_TOKENS":
		return finishLength, false, true
	case "tool_use", "TOOL_CALL":
		return finishToolCalls, false, true
	case "sensitive", "SAFETY":
		return finishContentFilter, false, true
	}
	return "", false, false
}

// unfinished is the failure of an answer whose provider gives a finish reason that is none.
func unfinished(raw []byte) UpstreamError {
	reason := Redact(string(raw[:min(len(raw), 64)]))
	return UpstreamError{Message: `the provider ended the answer with finish reason "` + reason + `"`, Code: reason}
}
