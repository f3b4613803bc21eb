package chat

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// given says whether the parameter is there and asks for something that would change the answer:
// n of 1, store of false or a service tier of auto ask for nothing.
func (r *Request) given(name string) bool {
	switch name {
	case "tools":
		return len(r.Tools) > 0
	case "tool_choice":
		return r.Choice.Mode != ToolsUnset && (r.Choice.Mode != ToolsAuto && r.Choice.Mode != ToolsNone || len(r.Tools) > 0)
	case "parallel_tool_calls":
		return r.ParallelToolCalls == Off && len(r.Tools) > 0
	case "response_format":
		return r.Format.Kind != TextFormat
	case "n":
		return r.N > 1
	case "max_tokens", "max_completion_tokens":
		return r.MaxTokens != nil
	case "stop":
		return len(r.Stop) > 0
	case "temperature":
		return r.Temperature != nil
	case "top_p":
		return r.TopP != nil
	case "presence_penalty":
		return notZero(r.PresencePenalty)
	case "frequency_penalty":
		return notZero(r.FrequencyPenalty)
	case "seed":
		return r.Seed != nil
	case "logprobs":
		return r.Logprobs
	case "top_logprobs":
		return notZero(r.TopLogprobs)
	case "logit_bias":
		return !r.LogitBias.Empty()
	case "reasoning_effort":
		return r.ReasoningEffort != nil
	case "service_tier":
		return r.ServiceTier != nil && !r.ServiceTier.Is("auto") && !r.ServiceTier.Is("default")
	case "verbosity":
		return r.Verbosity != nil && !r.Verbosity.Is("medium")
	case "modalities":
		for m := range r.Modalities.Items() {
			if !m.Is("text") {
				return true
			}
		}
		return false
	case "audio":
		return r.Audio != nil
	case "prediction":
		return r.Prediction != nil
	case "web_search_options":
		return r.WebSearchOptions != nil
	case "store":
		return r.Store
	}
	return r.Other(name) != nil
}

func notZero(v json.Value) bool {
	f, ok := v.Float()
	return ok && f != 0
}

// parameters are those that may change an answer. The others (user, metadata, prompt_cache_key,
// safety_identifier, stream_options) may be dropped where a provider has no place for them.
var parameters = [...]string{
	"tools", "tool_choice", "parallel_tool_calls", "response_format", "n", "max_tokens", "stop",
	"temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "logprobs",
	"top_logprobs", "logit_bias", "reasoning_effort", "service_tier", "verbosity", "modalities",
	"audio", "prediction", "web_search_options", "store",
}

// Refuse returns unsupported_parameter for the first of the names whose parameter is there and
// asks for something, nil when there is none.
func (r *Request) Refuse(names ...string) error {
	for _, name := range names {
		if r.given(name) {
			return interlock.Unsupported(name, "")
		}
	}
	return nil
}

// Supports returns unsupported_parameter for the first parameter that would change the answer
// and is not among the names, nil when there is none. Parameters that OpenAI does not have are
// among them unless named, as an adapter names the extension object that it reads. "max_tokens"
// stands for max_completion_tokens too. A parameter that asks for nothing (n of 1, no tools) is
// never refused.
func (r *Request) Supports(names ...string) error {
	for _, name := range parameters {
		if !contains(names, name) && r.given(name) {
			return interlock.Unsupported(name, "")
		}
	}
	for i := range r.Others {
		if !contains(names, r.Others[i].Key) {
			return interlock.Unsupported(r.Others[i].Key, "unknown parameter: "+r.Others[i].Key)
		}
	}
	return nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
