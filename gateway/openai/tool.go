package openai

// ToolCall is a call that a model made of a tool that the caller runs.
type ToolCall struct {
	Choice, Index int
	ID, Name      string
	Arguments     []byte // decoded; aliases the answer or stream it came from
	Custom        bool   // a custom tool: its input is text, not JSON
}

// Hash is HashArguments of the call's arguments.
func (c ToolCall) Hash() [32]byte { panic("not yet") }

// HashArguments is the SHA-256 of the canonical form of a tool call's arguments: object keys
// sorted by their bytes, no blanks, strings with the fewest escapes, numbers as written. Empty
// arguments are {}; what is not JSON is hashed as it is.
func HashArguments(arguments []byte) [32]byte { panic("not yet") }
