package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// style is the way in which a model is told how much to think.
type style uint8

const (
	styleNone     style = iota + 1 // it cannot be told
	styleBudget                    // up to 4.5: a number of tokens
	styleAdaptive                  // from 4.6: thinking that adapts, and an effort
)

// styleNamed reads the setting. auto says that it goes by the model; both are nothing for a word
// that is none.
func styleNamed(word string) (s style, auto bool) {
	switch word {
	case "auto":
		return 0, true
	case "budget":
		return styleBudget, false
	case "adaptive":
		return styleAdaptive, false
	case "none":
		return styleNone, false
	}
	return 0, false
}

// styleOf is a model's style. Others than Claude, behind the same API, know the older one.
func styleOf(model string, s *settings) style {
	if !s.auto {
		return s.style
	}
	version, ok := claude(model)
	switch {
	case !ok:
		return styleBudget
	case version >= 406:
		return styleAdaptive
	case version >= 307:
		return styleBudget
	}
	return styleNone
}

var effortNames = [...]string{"none", "minimal", "low", "medium", "high", "xhigh"}

const effortXHigh = 5

// budgets are how many tokens of thinking an effort stands for, where a number is wanted.
var budgets = [...]uint64{0, 1024, 2048, 8192, 16384, 32768}

// words are the efforts' for models that have words for it. The one for xhigh is not known to all.
var words = [...]string{"", "low", "low", "medium", "high", "xhigh"}

const (
	leastBudget = 1024  // the provider takes no fewer
	leastAnswer = 256   // tokens left for the answer, where the caller's limit is tight
	goodAnswer  = 8192  // tokens left for the answer, where the caller set no limit
	safeLimit   = 32000 // no model that thinks takes fewer as max_tokens
)

// thought is what a request says of thinking.
type thought struct {
	limit    uint64     // max_tokens, where the caller gives none
	thinking json.Value // an object or nil
	effort   string     // of output_config, "" without
}

// think makes thinking and max_tokens of reasoning_effort. forced: a call of a tool is forced,
// beside which the provider does not think.
func think(c *interlock.Call, s *settings, r *chat.Request, ext *extension, forced bool) (t thought, err error) {
	t.limit = s.maxTokens
	if t.limit == 0 {
		t.limit = defaultTokens(c.Model)
	}
	if ext.thinks {
		if ext.budget >= t.limit && ext.budget < 1<<32 {
			t.limit += ext.budget
		}
		return t, nil
	}
	if r.ReasoningEffort == nil {
		return t, nil
	}
	e := 0
	for ; e < len(effortNames) && !r.ReasoningEffort.Is(effortNames[e]); e++ {
	}
	if e == len(effortNames) {
		return t, interlock.BadParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
	}
	switch styleOf(c.Model, s) {
	case styleAdaptive:
		t.adapt(c.Model, e, forced)
		return t, nil
	case styleBudget:
		if e == 0 {
			return t, nil // these do not think unless told to
		}
		if forced {
			return t, interlock.Unsupported("reasoning_effort", "this model's provider cannot reason where a call of a tool is forced")
		}
		if unthinking(r.Messages) {
			return t, nil
		}
		return t, t.budget(r.MaxTokens, budgets[e])
	default:
		if e == 0 {
			return t, nil
		}
		return t, interlock.Unsupported("reasoning_effort", "")
	}
}

func (t *thought) adapt(model string, e int, forced bool) {
	if e == 0 {
		t.thinking = json.Value(`{"type":"disabled"}`) // the newest think unless told not to
		return
	}
	version, _ := claude(model)
	if t.effort = words[e]; e == effortXHigh && version == 406 {
		t.effort = "max"
	}
	switch {
	case forced:
	case version > 406: // these show nothing of it unless asked
		t.thinking = json.Value(`{"type":"adaptive","display":"summarized"}`)
	default:
		t.thinking = json.Value(`{"type":"adaptive"}`)
	}
}

// budget asks for that many tokens of thinking, or what there is room for within max_tokens.
func (t *thought) budget(limit json.Value, tokens uint64) error {
	if n, ok := limit.Uint(); ok {
		if n <= leastBudget {
			return interlock.BadParam("max_completion_tokens", "must be above 1024 for this model to reason")
		}
		tokens = min(tokens, max(n-min(n, leastAnswer), leastBudget))
	} else {
		answer := min(t.limit, goodAnswer)
		t.limit = max(t.limit, min(t.limit+tokens, safeLimit))
		tokens = max(min(tokens, t.limit-answer), leastBudget)
	}
	b := json.AppendUint([]byte(`{"type":"enabled"`), "budget_tokens", tokens)
	t.thinking = append(b, '}')
	return nil
}

// unthinking says whether the conversation stands amid calls of tools that were made without
// thinking of this provider's: it does not let a model begin to think there.
func unthinking(messages []chat.Message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		switch {
		case m.Role == chat.User:
			return false
		case m.Role == chat.Assistant && len(m.ToolCalls) > 0:
			for item := range m.Own(name) {
				if kind := item.Get("type"); kind.Is(typeThinking) || kind.Is(typeRedacted) {
					return false
				}
			}
			return true
		}
	}
	return false
}
