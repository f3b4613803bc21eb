package openai

import "iter"

// Modality is a set of the kinds of content that a request holds.
type Modality uint8

// The modalities.
const (
	Text Modality = 1 << iota
	Image
	Audio
	File
)

// Structure says what shape of answer a request asks for.
type Structure uint8

// The structures.
const (
	Unstructured Structure = iota
	JSONObject             // any JSON object
	JSONSchema             // JSON that satisfies Request.Schema
)

// Request holds the facts of a caller's body that routing, policy and the ledger need. Byte
// slices and spans refer to the body that was scanned. The zero value is ready for use, and one
// value may be used again for the next body.
type Request struct {
	Endpoint Endpoint
	Model    []byte // as decoded; aliases the body, or this value when the name was escaped
	Stream   bool
	// IncludeUsage: the caller asked for the usage chunk of a stream.
	IncludeUsage bool

	Modalities        Modality
	Tools             bool // functions or custom tools that the caller runs
	HostedTools       bool // tools that the provider runs, web_search_options included
	ParallelToolCalls bool // explicitly true
	StrictTools       bool // at least one tool is strict

	Structure    Structure
	StrictSchema bool
	Schema       Span // the promised JSON Schema, raw

	Background       bool
	Conversation     bool // a conversation is named
	Store            bool // explicitly true
	PreviousResponse bool // previous_response_id is named
	Base64           bool // encoding_format is base64 (embeddings)

	Choices         int   // n; 1 when absent
	MaxOutputTokens int64 // the largest of max_tokens, max_completion_tokens, max_output_tokens; 0 = not set
	InputTokens     int64 // a rough estimate: bytes of text / 4

	User           Span // raw JSON string, quotes included
	PromptCacheKey Span // likewise

	modelAt   Span
	optionsAt Span
	usageAt   Span
	toolsAt   Span
	end       int
	scratch   [256]byte
}

// Edit says what to change in a caller's body on its way to a provider.
type Edit struct {
	Model    string // the upstream's name of the model; "" leaves what the caller wrote
	AskUsage bool   // ask for a stream's usage chunk where the caller did not
}

// ScanRequest validates a caller's whole body and fills r, in one pass and without allocating.
// The error, nil when the body is acceptable, has code InvalidRequest and names the field.
func ScanRequest(e Endpoint, body []byte, r *Request) *Error { panic("not yet") }

// AppendUpstream appends the body for a provider: body with the edits made and every other byte
// as it came. r must be what ScanRequest filled from the same body.
func (r *Request) AppendUpstream(dst, body []byte, e Edit) []byte { panic("not yet") }

// Tool is a tool that the caller offers.
type Tool struct {
	Name       string
	Strict     bool
	Parameters []byte // raw JSON Schema; nil when none was given
}

// OfferedTools walks the function tools of a scanned body.
func (r *Request) OfferedTools(body []byte) iter.Seq[Tool] { panic("not yet") }
