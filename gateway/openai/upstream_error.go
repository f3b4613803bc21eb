package openai

import (
	"cmp"
	"strconv"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// UpstreamError is what a provider said was wrong. Absent facts are empty. Its text is as sent: not
// redacted, and not for callers or logs before Redact.
type UpstreamError struct {
	Message string
	Type    string
	Code    string // numbers in decimal
	Param   string
	Status  int // a code that is the number of an HTTP error status; 0 otherwise
}

// maxErrorText bounds each text that is taken over from a provider's error.
const maxErrorText = 16 << 10

// ReadError finds an error in a provider's body or event, whatever its shape:
//
//	{"error": {"message", "type", "code", "param"}}   also beside choices; code text or number
//	{"error": {"error": {...}}}, {"error": "text", "code": "text"}
//	{"type": "error", "message", "code"}, {"message"}, {"detail": "text"}
//	{"detail": [{"msg", "loc"}]}, {"errors": [...]}, [{"error": {...}}]
//
// A null, false or empty error is none, and neither is a message beside choices or other results.
func ReadError(body []byte) (UpstreamError, bool) {
	if !jsonx.Valid(body) {
		return UpstreamError{}, false
	}
	var r jsonx.Reader
	r.Reset(body)
	return readDocument(&r, 0)
}

// maxErrorNesting bounds how deep an error may be wrapped.
const maxErrorNesting = 4

func readDocument(r *jsonx.Reader, nesting int) (u UpstreamError, found bool) {
	if nesting > maxErrorNesting {
		return u, false
	}
	switch r.Peek() {
	case jsonx.Array:
		r.Enter()
		for r.Item() {
			if u, found = readDocument(r, nesting+1); found {
				return u, true
			}
		}
		return u, false
	case jsonx.Object:
		return readTopLevel(r, nesting)
	}
	r.Skip()
	return u, false
}

// readTopLevel reads an object that may hold an error or be one.
func readTopLevel(r *jsonx.Reader, nesting int) (UpstreamError, bool) {
	var flat, inner UpstreamError
	var found, isError, isResult bool
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "error", "errors":
			if u, ok := readErrorValue(r, nesting+1); ok && !found {
				inner, found = u, true
			}
		case "detail":
			if u, ok := readErrorValue(r, nesting+1); ok && flat.Message == "" {
				flat.Message, isError = u.Message, u.Message != ""
			}
		case "choices", "data", "output", "results":
			isResult = true
			r.Skip()
		case "object":
			kind := text(r)
			isError = isError || kind == "error"
			isResult = isResult || kind != "error"
		case "type":
			flat.Type = text(r)
			isError = isError || flat.Type == "error"
		default:
			readField(r, key, &flat)
		}
	}
	switch {
	case found:
		fill(&inner, flat)
		return inner, true
	case flat.Message != "" && (isError || !isResult):
		return flat, true
	}
	return UpstreamError{}, false
}

// fill completes an inner error with what stood beside it.
func fill(u *UpstreamError, beside UpstreamError) {
	if u.Message == "" {
		u.Message = beside.Message
	}
	if u.Type == "" && beside.Type != "error" {
		u.Type = beside.Type
	}
	if u.Code == "" {
		u.Code, u.Status = beside.Code, beside.Status
	}
	if u.Param == "" {
		u.Param = beside.Param
	}
}

// readErrorValue reads the value of an "error" member; false for null, false and what is empty.
func readErrorValue(r *jsonx.Reader, nesting int) (u UpstreamError, found bool) {
	switch r.Peek() {
	case jsonx.String:
		u.Message = text(r)
		return u, u.Message != ""
	case jsonx.Bool:
		return u, r.TrueOrSkip()
	case jsonx.Number:
		readField(r, []byte("code"), &u)
		return u, u.Code != "" && u.Code != "0"
	case jsonx.Array:
		r.Enter()
		for r.Item() {
			if v, ok := readErrorValue(r, nesting+1); ok && !found {
				u, found = v, true
			}
		}
		return u, found
	case jsonx.Object:
		return readErrorObject(r, nesting)
	}
	r.Skip()
	return u, false
}

func readErrorObject(r *jsonx.Reader, nesting int) (u UpstreamError, found bool) {
	var inner UpstreamError
	nested := false
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			break
		}
		found = true
		if string(key) == "error" && nesting < maxErrorNesting {
			inner, nested = readErrorValue(r, nesting+1)
			continue
		}
		readField(r, key, &u)
	}
	if nested {
		fill(&inner, u)
		return inner, true
	}
	return u, found
}

// readField reads one field of an error.
func readField(r *jsonx.Reader, key []byte, u *UpstreamError) {
	switch string(key) {
	case "message", "msg":
		if s := text(r); s != "" {
			u.Message = s
		}
	case "type":
		if s := text(r); s != "" {
			u.Type = s
		}
	case "param":
		u.Param = text(r)
	case "code", "status_code":
		if c := text(r); c != "" && u.Code == "" {
			u.Code = c
			u.Status = cmp.Or(u.Status, errorStatus(c))
		}
	case "status":
		// "RESOURCE_EXHAUSTED", or the HTTP status once more: what there is of a type where none is.
		if s := text(r); u.Type == "" {
			u.Type = s
			u.Status = cmp.Or(u.Status, errorStatus(s))
		}
	default:
		r.Skip()
	}
}

// errorStatus is the HTTP error status that a text is the number of; 0 when it is none.
func errorStatus(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

// text reads a string, or a number as it is written; "" for anything else.
func text(r *jsonx.Reader) string {
	switch r.Peek() {
	case jsonx.String:
		raw, escaped := r.Str()
		return string(jsonx.Decoded(raw[:min(len(raw), maxErrorText)], escaped))
	case jsonx.Number:
		from, to := r.Skip()
		if to-from > 64 {
			return ""
		}
		return string(r.Bytes(from, to))
	}
	r.Skip()
	return ""
}
