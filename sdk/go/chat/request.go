package chat

import (
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Request is a view of a chat completion's body. A json.Value is nil where the parameter is
// absent or null; where it is not, it has the type that OpenAI gives it. Everything aliases the
// body.
type Request struct {
	Model        json.Value // a string; the provider's name of it is in interlock.Call
	Stream       bool
	IncludeUsage bool
	Messages     []Message // at least one
	Tools        []Tool
	Choice       ToolChoice
	// ParallelToolCalls is what the caller said about calling several tools at once.
	ParallelToolCalls Switch
	Format            Format
	N                 int // 1 when absent

	MaxTokens        json.Value // a whole number above 0: max_completion_tokens, or else max_tokens
	Stop             []json.Value
	Temperature      json.Value // numbers
	TopP             json.Value
	PresencePenalty  json.Value
	FrequencyPenalty json.Value
	Seed             json.Value // a whole number
	Logprobs         bool
	TopLogprobs      json.Value // a whole number
	LogitBias        json.Value // an object
	ReasoningEffort  json.Value // strings
	User             json.Value
	ServiceTier      json.Value
	Verbosity        json.Value
	PromptCacheKey   json.Value
	SafetyIdentifier json.Value
	Metadata         json.Value // an object
	Modalities       json.Value // an array
	Audio            json.Value // an object
	Prediction       json.Value // an object
	WebSearchOptions json.Value // an object
	Store            bool

	// Others are the members that OpenAI does not have, or not any more, in order; those that are
	// null are left out.
	Others []Member
}

// Member is a member of an object.
type Member struct {
	Key   string
	Value json.Value
}

// Other returns the value of one of Others, nil when it is not there.
func (r *Request) Other(key string) (v json.Value) {
	for i := range r.Others {
		if r.Others[i].Key == key {
			v = r.Others[i].Value
		}
	}
	return v
}

// Switch is a boolean that may be absent.
type Switch uint8

// The positions of a Switch.
const (
	Unset Switch = iota
	Off
	On
)

// Tool is a function that the caller runs.
type Tool struct {
	Name        json.Value // a string, not empty
	Description json.Value // a string or nil
	Parameters  json.Value // a JSON Schema, an object, or nil
	Strict      bool
	// Others are the members that OpenAI does not have, of the tool and then of its function.
	Others []Member
}

// ToolMode says whether the model is to call a tool.
type ToolMode uint8

// The modes.
const (
	ToolsUnset ToolMode = iota // the caller did not say
	ToolsAuto
	ToolsNone
	ToolsRequired
	ToolsNamed // the one that ToolChoice.Name names
)

// ToolChoice is the parameter of that name.
type ToolChoice struct {
	Mode ToolMode
	Name json.Value // a string, with ToolsNamed
}

// FormatKind is what shape of answer is asked for.
type FormatKind uint8

// The kinds of format.
const (
	TextFormat   FormatKind = iota
	ObjectFormat            // any JSON object
	SchemaFormat            // JSON that satisfies Format.Schema
)

// Format is the parameter response_format.
type Format struct {
	Kind        FormatKind
	Name        json.Value // strings, with SchemaFormat
	Description json.Value // or nil
	Schema      json.Value // an object, or nil
	Strict      bool
}

// Role is who says a message.
type Role uint8

// The roles.
const (
	System Role = iota + 1
	Developer
	User
	Assistant
	ToolRole
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Parts []Part     // content; a string is one part of text; none when absent, null or an empty list
	Name  json.Value // a string or nil

	ToolCallID json.Value // a string, with ToolRole

	// The rest with Assistant.
	ToolCalls []ToolCall
	Refusal   json.Value // a string or nil
	Reasoning json.Value // reasoning_content: a string or nil
	// ProviderData are the objects in the extension member provider_data.
	ProviderData []json.Value
}

// PartKind is what a part of a message holds.
type PartKind uint8

// The kinds of part.
const (
	Text PartKind = iota + 1 // a part "refusal" of an assistant's message too
	Image
	File
	Audio
)

// Part is a part of a message's content.
type Part struct {
	Kind PartKind
	Text json.Value // a string, with Text
	// URL is a string, with an Image that is not given as data.
	URL json.Value
	// MediaType is in lower case, without parameters: of a data: URL, of an Audio's format, of a
	// File's name where the data has none; "" when unknown.
	MediaType string
	// Data is a string: base64, or a large string's handle. With an Image that is a data: URL, an
	// Audio and a File that has no FileID.
	Data json.Value
	// Format is a string, with Audio: "wav", "mp3".
	Format   json.Value
	FileName json.Value // a string or nil, with File
	FileID   json.Value // a string or nil, with File
	Detail   json.Value // a string or nil, with Image
	// Others are the part's members that OpenAI does not have, in order.
	Others []Member
}

// ToolCall is a call that the assistant made.
type ToolCall struct {
	ID        json.Value // strings; ID and Name are not empty
	Name      json.Value
	Arguments json.Value // a string that holds JSON, or tries to
}

// ArgumentsJSON returns the arguments as the object they are: `{}` when they are empty. ok is
// false when they are not a JSON object. It allocates.
func (t *ToolCall) ArgumentsJSON() (object json.Value, ok bool) {
	text := t.Arguments.Text()
	if len(text) == 0 {
		return json.Value("{}"), true
	}
	v, err := json.Parse(text)
	if err != nil || !v.IsObject() {
		return nil, false
	}
	return v, true
}
