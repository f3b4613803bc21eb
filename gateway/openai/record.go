package openai

import "github.com/interlock-gateway/interlock/gateway/openai/jsonx"

// Product is a set of what an answer has held so far.
type Product uint8

// The products.
const (
	Content    Product = 1 << iota // visible text
	Reasoning                      // thinking, as text or as opaque data
	Refused                        // a refusal
	ToolCalled                     // a call of a tool that the caller runs
	Media                          // audio or images
	HostedTool                     // something of a tool that the provider runs
)

// Ending is the verdict on a finished answer.
type Ending uint8

// The endings.
const (
	// Whole: every choice has a finish reason. For other endpoints: the result is there.
	Whole Ending = iota
	// Empty: whole, but no choice holds content, a refusal, a tool call or media, and none ended for
	// its length or for a content filter. Reasoning alone is empty.
	Empty
	Cut     // it ended without a finish reason
	Broken  // it is not the wire format
	Errored // the provider reported an error: see Failure
	endings
)

var endingWords = [endings]string{"whole", "empty", "cut", "broken", "errored"}

func (e Ending) String() string {
	if e >= endings {
		return "unknown"
	}
	return endingWords[e]
}

// choice is what one choice of an answer has said.
type choice struct {
	seen   bool
	finish string
	text   []byte
}

// record is what an answer has said so far, streamed or not.
type record struct {
	id, model, tier string
	products        Product
	choices         []choice
	calls           calls
	usage           Usage
	hasUsage        bool
	failure         UpstreamError
	failed          bool
}

// reset forgets all but the buffers.
func (a *record) reset() {
	choices := a.choices
	for i := range choices {
		choices[i] = choice{text: modest(choices[i].text)}
	}
	*a = record{choices: choices[:0], calls: a.calls[:0]}
}

// choice finds a choice; nil when its index is not to be believed.
func (a *record) choice(index int64) *choice {
	if index < 0 || index >= maxIndex {
		return nil
	}
	for int64(len(a.choices)) <= index {
		if len(a.choices) < cap(a.choices) {
			a.choices = a.choices[:len(a.choices)+1]
		} else {
			a.choices = append(a.choices, choice{})
		}
	}
	c := &a.choices[index]
	c.seen = true
	return c
}

// fail notes what the provider says is wrong.
func (a *record) fail(u UpstreamError) {
	a.failure, a.failed = u, true
}

// failAs notes a failure that the provider may not have put into words.
func (a *record) failAs(u UpstreamError, state string) {
	if u.Message == "" {
		u.Message = "the provider ended the response as " + state
	}
	a.fail(u)
}

// ending is the verdict on a finished chat or completion.
func (a *record) ending() Ending {
	if a.failed {
		return Errored
	}
	any, limited := false, false
	for i := range a.choices {
		c := &a.choices[i]
		if !c.seen {
			continue
		}
		if c.finish == "" {
			return Cut
		}
		any = true
		limited = limited || c.finish == finishLength || c.finish == finishContentFilter
	}
	switch {
	case !any:
		return Cut
	case a.products&^Reasoning == 0 && !limited:
		return Empty
	}
	return Whole
}

// Failure is what the provider reported as wrong, where it did.
func (a *record) Failure() UpstreamError { return a.failure }

// Model is the model that the provider named, "" as long as it named none.
func (a *record) Model() string { return a.model }

// ID is the answer's ID, "" as long as there is none.
func (a *record) ID() string { return a.id }

// ServiceTier is the tier that the provider says it served with; "" when it does not say.
func (a *record) ServiceTier() string { return a.tier }

// Products says what the answer has held so far.
func (a *record) Products() Product { return a.products }

// Finish is the finish reason of a choice in OpenAI's words for chat ("stop", "length",
// "tool_calls", "content_filter", "function_call"); "" while it is open. A response is choice 0.
func (a *record) Finish(choice int) string {
	if choice < 0 || choice >= len(a.choices) {
		return ""
	}
	return a.choices[choice].finish
}

// Usage is the usage reported so far, the last one where it was reported several times; false when
// none was.
func (a *record) Usage() (Usage, bool) { return a.usage, a.hasUsage }

// ToolCalls lists the calls so far, in order of choice and index.
func (a *record) ToolCalls() []ToolCall { return a.calls.list() }

// Text is the visible text of a choice. It holds until the next use of the value it came from.
func (a *record) Text(choice int) []byte {
	if choice < 0 || choice >= len(a.choices) {
		return nil
	}
	return a.choices[choice].text
}

func (a *record) setID(raw []byte, escaped bool)    { setOnce(&a.id, raw, escaped) }
func (a *record) setModel(raw []byte, escaped bool) { setOnce(&a.model, raw, escaped) }

// maxName bounds IDs and names that are kept from an answer.
const maxName = 1024

func setOnce(to *string, raw []byte, escaped bool) {
	if *to == "" && len(raw) > 0 && len(raw) <= maxName {
		*to = string(jsonx.Decoded(raw, escaped))
	}
}
