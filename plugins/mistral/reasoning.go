package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// typeThinking is the type of an item of provider_data: so many bytes of the reasoning are one
// block of this provider's.
const typeThinking = "thinking"

// effortOf is the provider's word for reasoning_effort: it has none and high, and refuses others.
// nil where the caller gives none.
func effortOf(v json.Value) (json.Value, error) {
	if v == nil {
		return nil, nil
	}
	switch v.String() {
	case "none":
		return json.Value(`"none"`), nil
	case "minimal", "low", "medium", "high", "xhigh":
		return json.Value(`"high"`), nil
	}
	return nil, interlock.BadParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
}
