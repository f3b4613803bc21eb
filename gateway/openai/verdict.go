package openai

import (
	"strings"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// Finished is a finished answer, streamed or not: *Stream (with KeepText) and *Answer.
type Finished interface {
	Finish(choice int) string
	Text(choice int) []byte
	ToolCalls() []ToolCall
}

// ViolationKind says what is broken.
type ViolationKind uint8

// The kinds of violations.
const (
	NoViolation      ViolationKind = iota
	ContentNotJSON                 // JSON was promised, and the content is none
	ContentSchema                  // the content breaks the promised schema
	ArgumentsNotJSON               // a tool call's arguments are not JSON
	ArgumentsSchema                // a tool call's arguments break the tool's schema
	violationKinds
)

var violationWords = [violationKinds]string{"", "content_not_json", "content_schema", "arguments_not_json", "arguments_schema"}

// String returns the kind's word; NoViolation is the empty string.
func (k ViolationKind) String() string {
	if k >= violationKinds {
		return "unknown"
	}
	return violationWords[k]
}

// Violation says how an answer breaks what its request promised. The zero value is "not at all".
type Violation struct {
	Kind   ViolationKind
	Tool   string // the tool whose arguments are wrong
	Strict bool   // the schema was promised with strict: true
	Detail string // where in the value, and which keyword: never a value of the answer
	// Unchecked: a schema could not be held against the answer, for it is none, or too large or too
	// costly to be; what could be checked holds.
	Unchecked bool
}

// Check says whether a finished answer holds what its request promised: that content is JSON and
// satisfies the schema, that tool calls' arguments are JSON and satisfy their tool's. r must be
// what ScanRequest filled from body. A choice that ended for its length or a content filter, or
// that holds no text (a refusal, tool calls), promises no JSON.
//
// It reports the first violation. It is safe for concurrent use.
func (v *Validator) Check(r *Request, body []byte, f Finished) Violation {
	calls := f.ToolCalls()
	unchecked := false
	if len(calls) > 0 {
		found := v.checkCalls(r, body, f, calls)
		if found.Kind != NoViolation {
			return found
		}
		unchecked = found.Unchecked
	}
	if r.Structure == Unstructured {
		return Violation{Unchecked: unchecked}
	}
	schema := r.Schema.Of(body)
	for n := range max(r.Choices, 1) {
		finish := f.Finish(n)
		if n > 0 && finish == "" {
			break
		}
		text := f.Text(n)
		if len(text) == 0 || finish == finishLength || finish == finishContentFilter {
			continue
		}
		if r.Structure == JSONObject && !isObject(text) || !jsonx.Valid(text) {
			return Violation{Kind: ContentNotJSON, Strict: r.StrictSchema, Detail: "the content is not JSON"}
		}
		if r.Structure != JSONSchema || schema == nil {
			continue
		}
		switch detail, verdict := v.validate(schema, text); verdict {
		case violated:
			return Violation{Kind: ContentSchema, Strict: r.StrictSchema, Detail: detail}
		case unknown:
			unchecked = true
		}
	}
	return Violation{Unchecked: unchecked}
}

// isObject says whether text is a JSON object.
func isObject(text []byte) bool {
	var r jsonx.Reader
	r.Reset(text)
	return r.Peek() == jsonx.Object
}

func (v *Validator) checkCalls(r *Request, body []byte, f Finished, calls []ToolCall) Violation {
	tools := make(map[string]Tool)
	for t := range r.OfferedTools(body) {
		tools[t.Name] = t
	}
	unchecked := false
	for _, c := range calls {
		finish := f.Finish(c.Choice)
		if c.Custom || finish == finishLength || finish == finishContentFilter {
			continue
		}
		tool := tools[c.Name]
		arguments := c.Arguments
		if strings.TrimSpace(string(arguments)) == "" {
			arguments = []byte("{}") // a call without parameters
		}
		if c.Clipped {
			unchecked = true
			continue
		}
		if !jsonx.Valid(arguments) {
			return Violation{Kind: ArgumentsNotJSON, Tool: c.Name, Strict: tool.Strict, Detail: "the arguments are not JSON"}
		}
		if tool.Parameters == nil {
			continue
		}
		switch detail, verdict := v.validate(tool.Parameters, arguments); verdict {
		case violated:
			return Violation{Kind: ArgumentsSchema, Tool: c.Name, Strict: tool.Strict, Detail: detail}
		case unknown:
			unchecked = true
		}
	}
	return Violation{Unchecked: unchecked}
}
