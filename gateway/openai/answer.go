package openai

// AnswerOptions say what a whole answer needs on its way down.
type AnswerOptions struct {
	Model      string // filled in where the provider sends no model
	Disclosure []byte // JSON value for "interlock"; nil = none
	Base64     bool   // the caller asked for base64 embeddings: float arrays are rendered so
}

// Answer holds the facts of a whole, not streamed answer. Its slices refer to the body scanned.
type Answer struct{}

// Scan validates a body with a 2xx status and fills a.
func (a *Answer) Scan(e Endpoint, body []byte) Ending { panic("not yet") }

// AppendBody appends the body for the caller: body with what would break a typed SDK or a count
// put right, and every other byte as it came.
func (a *Answer) AppendBody(dst, body []byte, o AnswerOptions) []byte { panic("not yet") }

// Failure is the error of an Errored answer.
func (a *Answer) Failure() UpstreamError { panic("not yet") }

// Model is the model that the provider named, "" when none.
func (a *Answer) Model() string { panic("not yet") }

// ID is the answer's ID.
func (a *Answer) ID() string { panic("not yet") }

// Products says what the answer holds.
func (a *Answer) Products() Product { panic("not yet") }

// Finish is the finish reason of a choice in OpenAI's words.
func (a *Answer) Finish(choice int) string { panic("not yet") }

// Usage is the usage reported; false when none was.
func (a *Answer) Usage() (Usage, bool) { panic("not yet") }

// ToolCalls lists the calls, in order of choice and index.
func (a *Answer) ToolCalls() []ToolCall { panic("not yet") }

// Text is the text of a choice, decoded.
func (a *Answer) Text(choice int) []byte { panic("not yet") }

// ServiceTier is the tier that the provider says it served with; "" when it does not say.
func (a *Answer) ServiceTier() string { panic("not yet") }
