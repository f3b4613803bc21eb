package openai

// Finished is a whole answer, streamed or not: *Stream (with KeepText) and *Answer.
type Finished interface {
	Finish(choice int) string
	Text(choice int) []byte
	ToolCalls() []ToolCall
	Products() Product
}

// Violation says how an answer breaks what its request promised. The zero value is "not at all".
type Violation struct {
	Kind   ViolationKind
	Tool   string // the tool whose arguments are wrong
	Strict bool   // the schema was promised with strict: true
	Detail string // where in the value and which keyword; never a value of the answer
}

// ViolationKind says what is broken.
type ViolationKind uint8

// The kinds of violations.
const (
	NoViolation      ViolationKind = iota
	ContentNotJSON                 // JSON was promised
	ContentSchema                  // the content breaks the promised schema
	ArgumentsNotJSON               // a tool call's arguments are not JSON
	ArgumentsSchema                // a tool call's arguments break the tool's schema
)

// Validator checks answers against the schemas that requests promise. Safe for concurrent use.
type Validator struct{}

// NewValidator makes a validator that keeps at most that many compiled schemas.
func NewValidator(schemas int) *Validator { panic("not yet") }

// Check says whether f holds what the request promised. r must be what ScanRequest filled from body.
func (v *Validator) Check(r *Request, body []byte, f Finished) Violation { panic("not yet") }
