package cohere

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// The types of the items of provider_data.
const (
	typeThinking = "thinking"  // so many bytes of the reasoning are one block of this provider's
	typePlan     = "tool_plan" // what the model says of its plan before it calls tools
)

// effort is one of OpenAI's words for reasoning_effort, and how many tokens of thinking it stands
// for; 0 is as many as the model wants, which the provider recommends.
type effort struct {
	word   string
	budget uint64
}

var efforts = [...]effort{{"minimal", 1024}, {"low", 2048}, {"medium", 8192}, {"high", 0}, {"xhigh", 0}}

// leastAnswer is how many tokens the provider wants left for the answer.
const leastAnswer = 1024

// thinking is what reasoning_effort means for the model, nil where nothing is to be said.
func thinking(c *interlock.Call, s *settings, r *chat.Request) (json.Value, error) {
	if r.ReasoningEffort == nil {
		return nil, nil
	}
	able := s.reasoning == "thinking" || s.reasoning == "auto" && thinks(c.Model)
	word := r.ReasoningEffort.String()
	if word == "none" {
		if !able {
			return nil, nil
		}
		return json.Value(`{"type":"disabled"}`), nil
	}
	for _, e := range efforts {
		if e.word != word {
			continue
		}
		if !able {
			return nil, interlock.Unsupported("reasoning_effort", "this model does not reason")
		}
		v := []byte(`{"type":"enabled"`)
		if budget := e.budget; budget > 0 {
			if limit, ok := r.MaxTokens.Uint(); ok { // of the thinking and the answer together
				budget = max(1, min(budget, limit-min(limit/2, leastAnswer)))
			}
			v = strconv.AppendUint(append(v, `,"token_budget":`...), budget, 10)
		}
		return append(v, '}'), nil
	}
	return nil, interlock.BadParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
}

// silent are the beginnings of the names of models that do not reason. All later ones do.
var silent = [...]string{"command-r", "command-light", "command-nightly", "command-a-03-", "command-a-vision", "command-a-translate", "c4ai-", "aya"}

func thinks(model string) bool {
	if model == "command" {
		return false
	}
	for _, s := range silent {
		if hasPrefix(model, s) {
			return false
		}
	}
	return true
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }
