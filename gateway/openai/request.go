package openai

import "strings"

// Modality is a set of the kinds of content that a request holds or asks for.
type Modality uint8

// The modalities.
const (
	Text Modality = 1 << iota
	Image
	Audio
	File
)

var modalityWords = [...]string{"text", "image", "audio", "file"}

// Words lists the modalities' words in the order of the constants.
func (m Modality) Words() []string {
	var words []string
	for i, w := range modalityWords {
		if m&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return words
}

// String joins the words with commas.
func (m Modality) String() string { return strings.Join(m.Words(), ",") }

// Structure says what shape of answer a request asks for.
type Structure uint8

// The structures.
const (
	Unstructured Structure = iota
	JSONObject             // any JSON object
	JSONSchema             // JSON that satisfies Request.Schema
)

var structureWords = [...]string{"none", "json_object", "json_schema"}

// String returns the structure's word in policies: "none", "json_object" or "json_schema".
func (s Structure) String() string {
	if int(s) >= len(structureWords) {
		return "unknown"
	}
	return structureWords[s]
}

// Request holds the facts of a caller's body that routing, policy and the ledger need. Byte
// slices and spans refer to the body that was scanned. The zero value is ready for use, and one
// value may be used again for the next body; it must not be copied while Model is in use.
type Request struct {
	Endpoint Endpoint
	Model    []byte // decoded, never empty; aliases the body, or this value when it was escaped
	Stream   bool
	// IncludeUsage: the caller asked for the usage chunk of a stream.
	IncludeUsage bool

	Modalities        Modality
	Tools             bool // functions or custom tools that the caller runs
	HostedTools       bool // tools of another type, which the provider runs; web_search_options included
	ParallelToolCalls bool // explicitly true
	StrictTools       bool // at least one tool is strict

	Structure    Structure
	StrictSchema bool
	Schema       Span // the promised JSON Schema, raw; absent when none was given

	Background       bool // explicitly true
	Conversation     bool // a conversation is named
	Store            bool // explicitly true
	PreviousResponse bool // previous_response_id is named
	Base64           bool // encoding_format is base64 (embeddings)

	Choices         int   // n; 1 when absent
	MaxOutputTokens int64 // the largest of max_tokens, max_completion_tokens, max_output_tokens; 0 = not set
	InputTokens     int64 // a rough estimate: bytes of text / 4, and tokens where a prompt is given as such

	User           Span // raw JSON string, quotes included
	PromptCacheKey Span // likewise

	modelAt     Span
	optionsAt   Span // stream_options: an object or null
	usageAt     Span // the value of include_usage
	toolsAt     Span
	functionsAt Span
	lastValue   int    // offset behind the last member of the body
	private     []Span // provider_data of messages: what to cut out, in order
	scratch     [128]byte
}
