package fault

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// plan is how a rule's answer is put on the wire, whatever it says.
type plan struct {
	status       int // 0: 200
	reason       string
	problem      problem
	headers      []header
	as           mode // modeAny: as the request asks
	framing      framing
	length       int64 // the Content-Length claimed, with framingLength
	close        bool
	encoding     string // a content coding, "" for none
	chunk        int    // bytes of the body per write, 0: an event, or the whole
	trickle      int    // bytes per write of everything, 0: off
	trickleEvery time.Duration
	newline      string
	noDone       bool
	readHead     bool // the request's body is not waited for
	id, model    *template
	created      int64 // -1: as the script's
	trip         *trip
	body         *fixed
	speaks       bool // the steps say what the answer is
	writes       bool // the steps write on the connection by themselves
}

func newPlan() plan { return plan{created: -1, newline: "\n"} }

type framing uint8

const (
	framingAuto   framing = iota // chunked for a stream, else a true Content-Length
	framingChunks                // chunked
	framingLength                // a Content-Length that need not be true
	framingClose                 // the connection's end is the body's
)

type header struct {
	name  string
	value template
}

// trip ends or stalls an answer after so many bytes of its body.
type trip struct {
	after int64
	act   step
}

// fixed is a body given as it is.
type fixed struct {
	content     content
	contentType string // "" for an empty body
}

// problem is an OpenAI error object in parts; what is not given follows from
// the status.
type problem struct {
	code, message, param, kind *template
}

// saysClose reports whether a header of the rule closes the connection.
func (p plan) saysClose() bool {
	for _, h := range p.headers {
		if v, ok := h.value.plain(); ok && strings.EqualFold(h.name, "Connection") && strings.EqualFold(v, "close") {
			return true
		}
	}
	return false
}

// bodiless are the statuses whose answer ends with its head (RFC 9110).
func bodiless(status int) bool {
	return status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
}

func reasonPhrase(status int) string {
	if s := http.StatusText(status); s != "" {
		return s
	}
	if status == 529 {
		return "Site Overloaded"
	}
	return "Unknown"
}

// object is the error as JSON.
func (p problem) object(status int, v vars) string {
	kind, code := problemDefaults(status)
	field := func(t *template, fallback string) string {
		if t == nil {
			return fallback
		}
		return quoted(t.render(v))
	}
	return `{"message":` + field(p.message, quoted(reasonPhrase(status)+" ("+strconv.Itoa(status)+")")) +
		`,"type":` + field(p.kind, quoted(kind)) +
		`,"param":` + field(p.param, "null") +
		`,"code":` + field(p.code, quotedOrNull(code)) + `}`
}

// problemDefaults are the type and code that OpenAI gives with a status.
func problemDefaults(status int) (kind, code string) {
	switch {
	case status == 401:
		return "invalid_request_error", "invalid_api_key"
	case status == 402:
		return "insufficient_quota", "insufficient_quota"
	case status == 404:
		return "invalid_request_error", "model_not_found"
	case status == 429:
		return "rate_limit_error", "rate_limit_exceeded"
	case status == 529:
		return "overloaded_error", "overloaded"
	case status >= 500:
		return "server_error", ""
	default:
		return "invalid_request_error", ""
	}
}

// head renders the status line and headers. A header of the rule replaces the
// one the answer would have had; several of one name all go out.
func (p plan) head(status int, own []string, v vars) []byte {
	reason := p.reason
	if reason == "" {
		reason = reasonPhrase(status)
	}
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + reason + "\r\n")
	for i := 0; i < len(own); i += 2 {
		if !p.overrides(own[i]) {
			b.WriteString(own[i] + ": " + own[i+1] + "\r\n")
		}
	}
	for _, h := range p.headers {
		b.WriteString(h.name + ": " + h.value.render(v) + "\r\n")
	}
	return []byte(b.String() + "\r\n")
}

// overrides reports whether the rule gives that header itself. Content-Length
// and Transfer-Encoding are always added beside, so that they can conflict.
func (p plan) overrides(name string) bool {
	if strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Transfer-Encoding") {
		return false
	}
	for _, h := range p.headers {
		if strings.EqualFold(h.name, name) {
			return true
		}
	}
	return false
}
