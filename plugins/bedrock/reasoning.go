package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// style is the way in which a family of models is told how much to think: Converse has no
// parameter of its own for it.
type style uint8

const (
	styleNone     style = iota // it cannot be told
	styleBudget                // Claude up to 4.5: thinking with a number of tokens
	styleAdaptive              // Claude from 4.6: thinking that adapts, and an effort
	styleNova                  // Nova 2: reasoningConfig
	styleConfig                // Qwen: reasoning_config, a word
	styleEffort                // OpenAI's open models: reasoning_effort
)

var styleNames = [...]string{
	styleNone: "none", styleBudget: "budget", styleAdaptive: "adaptive",
	styleNova: "nova", styleConfig: "config", styleEffort: "effort",
}

func styleNamed(word string) (style, bool) {
	for i, n := range styleNames {
		if n == word {
			return style(i), true
		}
	}
	return styleNone, false
}

func styleOf(model string, s *settings) style {
	if s.reasoning != "" {
		st, _ := styleNamed(s.reasoning)
		return st
	}
	if version, ok := claude(model); ok {
		switch {
		case version >= 406:
			return styleAdaptive
		case version >= 307:
			return styleBudget
		}
		return styleNone
	}
	b := base(model)
	switch {
	case hasPrefix(b, "amazon.nova-2"):
		return styleNova
	case hasPrefix(b, "qwen."):
		return styleConfig
	case hasPrefix(b, "openai.gpt-oss"):
		return styleEffort
	}
	return styleNone
}

// effort is one of OpenAI's words.
type effort uint8

const (
	effortNone effort = iota
	effortMinimal
	effortLow
	effortMedium
	effortHigh
	effortXHigh
)

var effortNames = [...]string{"none", "minimal", "low", "medium", "high", "xhigh"}

// budgets are how many tokens of thinking an effort stands for, where a number is wanted.
var budgets = [...]uint64{0, 1024, 2048, 8192, 16384, 32768}

const (
	leastBudget = 1024 // the provider takes no fewer
	leastAnswer = 256  // tokens left for the answer, where the limit is tight
)

// threeWords are the efforts for models that know low, medium and high only.
var threeWords = [...]string{"", "low", "low", "medium", "high", "high"}

// appendReasoning appends to additionalModelRequestFields what reasoning_effort means for the
// model. Members that the caller's extension object has stay the caller's.
func appendReasoning(b []byte, c *interlock.Call, s *settings, r *chat.Request, own json.Value, limit json.Value) ([]byte, error) {
	if r.ReasoningEffort == nil {
		return b, nil
	}
	e := effort(0)
	for ; int(e) < len(effortNames) && !r.ReasoningEffort.Is(effortNames[e]); e++ {
	}
	if int(e) == len(effortNames) {
		return nil, interlock.BadParam("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")
	}
	set := func(key, value string) {
		if own.Get(key) == nil {
			b = json.AppendMember(b, key, json.Value(value))
		}
	}
	st := styleOf(c.Model, s)
	if e == effortNone && st != styleNone && st != styleEffort {
		return b, nil // they do not think unless told to
	}
	switch st {
	case styleBudget:
		budget := budgets[e]
		if n, ok := limit.Uint(); ok {
			if n <= leastBudget {
				return nil, interlock.BadParam("max_completion_tokens", "must be above 1024 for this model to reason")
			}
			budget = min(budget, max(n-min(n, leastAnswer), leastBudget))
		}
		v := json.AppendUint([]byte(`{"type":"enabled"`), "budget_tokens", budget)
		set("thinking", string(append(v, '}')))
	case styleAdaptive:
		word := threeWords[e]
		if e == effortXHigh {
			if word = "xhigh"; !knowsXHigh(c.Model) {
				word = "max"
			}
		}
		set("thinking", `{"type":"adaptive"}`)
		set("output_config", `{"effort":"`+word+`"}`)
	case styleNova:
		set("reasoningConfig", `{"type":"enabled","maxReasoningEffort":"`+threeWords[e]+`"}`)
	case styleConfig:
		set("reasoning_config", `"`+threeWords[e]+`"`)
	case styleEffort:
		if e == effortNone {
			return nil, interlock.Unsupported("reasoning_effort", "this model cannot be told not to reason")
		}
		set("reasoning_effort", `"`+threeWords[e]+`"`)
	default:
		return nil, interlock.Unsupported("reasoning_effort", "")
	}
	return b, nil
}

func knowsXHigh(model string) bool {
	version, ok := claude(model)
	return ok && version > 406
}

// reasoningBlocks writes the reasoning of an assistant's message that its model signed, or that
// only the provider can read, as it came. What another vendor's model signed is left out: no
// other model accepts it.
func (w *writer) reasoningBlocks(m *chat.Message, at string) error {
	for item, text := range m.Own(name) {
		if !item.Get("vendor").Is(w.vendor) {
			continue
		}
		switch kind := item.Get("type"); {
		case kind.Is(typeReasoning):
			signature := item.Get("signature")
			if !signature.IsString() {
				return interlock.BadParam(at+".provider_data", "an item of bedrock's has no signature")
			}
			b := append(w.open(false), `{"reasoningContent":{"reasoningText":{"text":`...)
			b = json.AppendMember(json.AppendQuote(b, text), "signature", signature)
			w.b = append(b, "}}}"...)
		case kind.Is(typeRedacted):
			data := item.Get("data")
			if !data.IsString() {
				return interlock.BadParam(at+".provider_data", "an item of bedrock's has no data")
			}
			w.b = append(append(append(w.open(false), `{"reasoningContent":{"redactedContent":`...), data...), "}}"...)
		}
	}
	return nil
}

// The types of the items of provider_data. An unsigned one only says whose the reasoning's bytes
// before a signed one are.
const (
	typeReasoning = "reasoning"
	typeRedacted  = "redacted"
	typeUnsigned  = "unsigned"
)
