package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// The codes of refusals. They are the callers' side's where it has the same case; the README of
// the packages lists the others, see TestCodesAreDocumented.
const (
	invalidRequest     = "invalid_request"
	requestTooLarge    = "request_too_large"
	invalidToken       = "invalid_token" // #nosec G101 -- a code
	permissionDenied   = "permission_denied"
	foreignHost        = "foreign_host"
	foreignOrigin      = "foreign_origin"
	notFound           = "not_found"
	nameTaken          = "name_taken"
	reloadRefused      = "reload_refused"
	decisionFailed     = "decision_failed"
	candidateInForce   = "candidate_in_force"
	changeNotRecorded  = "change_not_recorded"
	keysNotInForce     = "keys_not_in_force"
	storageUnavailable = "storage_unavailable"
	internalError      = "internal_error"
)

// refusal is an answer other than success. It is an error of a handler.
type refusal struct {
	status  int
	code    string
	message string
	param   string // the field or parameter at fault
	allow   string // of a 405
}

func (r *refusal) Error() string { return r.message }

func bad(param, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, code: invalidRequest, param: param, message: fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) *refusal {
	return &refusal{status: http.StatusNotFound, code: notFound, message: fmt.Sprintf(format, args...)}
}

// kind is the error's type in OpenAI's shape.
func (r *refusal) kind() string {
	switch {
	case r.status == http.StatusUnauthorized:
		return "authentication_error"
	case r.status == http.StatusForbidden:
		return "permission_error"
	case r.status >= http.StatusInternalServerError:
		return "server_error"
	case r.status == http.StatusConflict:
		return "conflict_error"
	default:
		return "invalid_request_error"
	}
}

// errorBody is the one shape of an error, the callers' side's.
type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Param   *string `json:"param"`
}

func (r *refusal) body() errorBody {
	return errorBody{Message: r.message, Type: r.kind(), Code: r.code, Param: textOrNull(r.param)}
}

func (s *Server) refuse(w http.ResponseWriter, r *refusal) {
	if r.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="interlock"`)
	}
	_ = writeJSON(w, r.status, map[string]errorBody{"error": r.body()}) // nobody is left to tell
}

// fail answers an error of a handler.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refused *refusal
	var filter *ledger.FilterError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &refused):
	case errors.As(err, &filter):
		refused = bad(filter.Name, "%s", filter.Message)
	case errors.As(err, &tooLarge):
		refused = &refusal{
			status: http.StatusRequestEntityTooLarge, code: requestTooLarge,
			message: fmt.Sprintf("the body is larger than the %d bytes allowed", tooLarge.Limit),
		}
	case r.Context().Err() != nil:
		return // the operator has left
	case storage.Away(err), errors.Is(err, storage.ErrClosed), errors.Is(err, ledger.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		s.log.Error("admin request failed", "method", r.Method, "path", r.URL.Path, "error", err.Error())
		refused = &refusal{status: http.StatusServiceUnavailable, code: storageUnavailable, message: "the storage cannot be used now; the gateway's log says why"}
	default:
		s.log.Error("admin request failed", "method", r.Method, "path", r.URL.Path, "error", err.Error())
		refused = &refusal{status: http.StatusInternalServerError, code: internalError, message: "the gateway failed at this request; its log says how"}
	}
	s.refuse(w, refused)
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return write(w, status, "application/json", b.Bytes())
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // an operator who has left needs no answer
	return nil
}

// read decodes a body into v, a pointer to a struct. Fields that v lacks are refused by name.
func (c *call) read(v any) error {
	b, err := io.ReadAll(c.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return bad("", "the body could not be read: %s", err)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return bad("", "a JSON object is required as the body")
	}
	return decode(b, v)
}

// readOptional is read, for a body that may be left out.
func (c *call) readOptional(v any) error {
	b, err := io.ReadAll(c.Body)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return err
	}
	return decode(b, v)
}

func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var refused *refusal
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return bad("", "the body holds more than one JSON value")
		}
		if name, twice := repeated(b); twice {
			return bad(name, "%s is given twice", name)
		}
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &wrong):
		return bad(wrong.Field, "%s: %s is not allowed here", orBody(wrong.Field), wrong.Value)
	case errors.As(err, &syntax):
		return bad("", "the body is not JSON: %s, at byte %d", err, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return bad("", "the body is not JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return bad(name, "the field %q is not known here", name)
	}
	return bad("", "the body is not usable: %s", err)
}

func orBody(field string) string {
	if field == "" {
		return "the body"
	}
	return field
}

// parameters reads the query and refuses what is not among the names, or is there twice.
func (c *call) parameters(names ...string) (url.Values, error) {
	q, err := c.query()
	if err != nil {
		return nil, err
	}
	for name, values := range q {
		if !slices.Contains(names, name) {
			if len(names) == 0 {
				return nil, bad(name, "the parameter %q is not known here; none is allowed", name)
			}
			return nil, bad(name, "the parameter %q is not known here; allowed are %s", name, strings.Join(names, ", "))
		}
		if len(values) > 1 {
			return nil, bad(name, "the parameter %q is given %d times; allowed is once", name, len(values))
		}
	}
	return q, nil
}

func (c *call) query() (url.Values, error) {
	q, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return nil, bad("", "the query cannot be read: %s", err)
	}
	return q, nil
}

// changing is a context for a change that has begun: an operator who leaves does not cut it
// short between the change and its record.
func (c *call) changing() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Context()), changeTimeout)
}

// Absent facts are null.

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
