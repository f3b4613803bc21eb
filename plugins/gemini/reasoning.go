package gemini

import (
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// style is the way in which a model is told how much to think.
type style uint8

const (
	styleAuto   style = iota // by the model's name
	styleLevel               // a word: from the third generation on
	styleBudget              // a number of tokens: 2.5
	styleNone                // it does not think
)

var styleNames = [...]string{styleAuto: "auto", styleLevel: "level", styleBudget: "budget", styleNone: "none"}

func styleNamed(word string) (style, bool) {
	for i, n := range styleNames {
		if n == word {
			return style(i), true
		}
	}
	return styleAuto, false
}

func styleOf(s *settings, model string) style {
	if s.reasoning != styleAuto {
		return s.reasoning
	}
	n, ok := generation(model)
	switch {
	case !ok && hasPrefix(family(model), "gemma-"), ok && n < 205:
		return styleNone
	case ok && n < 300:
		return styleBudget
	}
	return styleLevel
}

// effort is one of OpenAI's words for reasoning_effort, with what it stands for.
type effort struct {
	word, level string
	budget      uint64 // tokens
}

// efforts are mapped as the provider does it itself where it is called in OpenAI's format. There
// is nothing above high.
var efforts = [...]effort{
	{"none", "", 0},
	{"minimal", "minimal", 1024},
	{"low", "low", 1024},
	{"medium", "medium", 8192},
	{"high", "high", 24576},
	{"xhigh", "high", 24576},
}

// thinking returns what thinkingConfig has to say, nil when nothing.
func thinking(s *settings, model string, r *chat.Request) (json.Value, error) {
	b := []byte{'{'}
	include := s.thoughts
	if r.ReasoningEffort != nil {
		e := effort{}
		for _, known := range efforts {
			if is(r.ReasoningEffort, known.word) {
				e = known
			}
		}
		if e.word == "" {
			return nil, badParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
		}
		none := e.level == ""
		switch st := styleOf(s, model); {
		case st == styleNone && none:
			return nil, nil
		case st == styleNone:
			return nil, unsupported("reasoning_effort", "this model does not reason")
		case none && (st == styleLevel || isPro(model)):
			return nil, unsupported("reasoning_effort", "this model cannot be told not to reason")
		case st == styleLevel:
			b = json.AppendText(b, "thinkingLevel", level(e.level, model))
		default:
			b = json.AppendUint(b, "thinkingBudget", e.budget)
		}
		if include == unset && !none {
			include = on
		}
	}
	if include != unset && styleOf(s, model) != styleNone {
		b = json.AppendBool(b, "includeThoughts", include == on)
	}
	if len(b) == 1 {
		return nil, nil
	}
	return char(b, '}'), nil
}

// level is the nearest word that the model knows: its Pro models have no minimal, and the first
// of them no medium.
func level(word, model string) string {
	switch {
	case word == "minimal" && isPro(model):
		return "low"
	case word == "medium" && hasPrefix(family(model), "gemini-3-pro"):
		return "high"
	}
	return word
}
