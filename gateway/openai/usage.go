package openai

// Usage counts tokens by OpenAI's convention: cached tokens are inside Input, reasoning tokens
// inside Output.
type Usage struct {
	Input, Output, Cached, Reasoning, CacheWrite int64
}
