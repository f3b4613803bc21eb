package openai

import "github.com/interlock-gateway/interlock/gateway/openai/jsonx"

// Usage counts tokens by OpenAI's convention: cached tokens are inside Input, reasoning tokens
// inside Output.
type Usage struct {
	Input, Output, Cached, Reasoning, CacheWrite int64
}

// usageFields is a usage object as it was written.
type usageFields struct {
	Usage
	total    int64
	any      bool // a count was there
	outputAt Span // the number of completion tokens
	moved    bool // Output is not the number that was written
}

// readUsage reads a usage object of any endpoint:
//
//	{"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details": {"cached_tokens"},
//	 "completion_tokens_details": {"reasoning_tokens"}}
//	{"input_tokens", "output_tokens", "input_tokens_details": {…}, "output_tokens_details": {…}}
//
// Cached tokens may stand beside them (prompt_cache_hit_tokens, num_cached_tokens). Some providers
// count reasoning beside the completion, which shows in a total that is the sum of all three; it
// is moved inside then.
func readUsage(r *jsonx.Reader) (u usageFields) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return u
	}
	var hit int64
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.count(r, &u.Input)
		case "completion_tokens", "output_tokens":
			r.Peek()
			from := r.Pos()
			if u.count(r, &u.Output) {
				u.outputAt = Span{from, r.Pos()}
			}
		case "total_tokens":
			u.count(r, &u.total)
		case "prompt_cache_hit_tokens", "num_cached_tokens":
			u.count(r, &hit)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			u.details(r)
		default:
			r.Skip()
		}
	}
	if u.Cached == 0 {
		u.Cached = hit
	}
	if u.Reasoning > 0 && u.outputAt.Present() && u.total == u.Input+u.Output+u.Reasoning {
		u.Output, u.moved = u.total-u.Input, true
	}
	return u
}

func (u *usageFields) count(r *jsonx.Reader, to *int64) bool {
	n, ok := r.IntOrSkip()
	if !ok || n < 0 {
		return false
	}
	*to, u.any = n, true
	return true
}

func (u *usageFields) details(r *jsonx.Reader) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "cached_tokens":
			u.count(r, &u.Cached)
		case "reasoning_tokens":
			u.count(r, &u.Reasoning)
		case "cache_write_tokens":
			u.count(r, &u.CacheWrite)
		default:
			r.Skip()
		}
	}
}
