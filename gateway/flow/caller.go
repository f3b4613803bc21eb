package flow

import (
	"math"
	"strconv"
	"time"
	"unsafe"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// wishes is what a caller asked of the gateway in its headers. Strings alias the request's
// header and hold until the exchange is closed; the ledger keeps copies.
type wishes struct {
	correlation  []byte
	userAction   []byte
	budget       []byte
	patience     time.Duration // how long the caller will wait; 0 = it did not say
	sideEffects  policy.SideEffects
	substitution policy.Wish
	buffered     bool
	clientRetry  int // an SDK's own number; -1 = it sent none
	userAgent    []byte
	traceParent  []byte
	traceState   []byte
}

const (
	maxCorrelation = 128
	maxUserAction  = 256
	maxPatience    = 24 * time.Hour
)

// readWishes reads the headers. What only the gateway's own headers can say must be
// well-formed; what SDKs send by themselves is ignored where it is not.
func readWishes(h Head, w *wishes) *openai.Error {
	*w = wishes{clientRetry: -1, userAgent: h.Peek("user-agent")}
	if v := h.Peek("x-request-id"); len(v) <= maxCorrelation && printable(v) {
		w.correlation = v
	}
	for _, name := range [...]string{"interlock-user-action", "idempotency-key"} {
		v := h.Peek(name)
		if len(v) == 0 {
			continue
		}
		if len(v) > maxUserAction || !printable(v) {
			return badHeader(name, "1 to "+strconv.Itoa(maxUserAction)+" printable ASCII characters")
		}
		w.userAction = v
		break
	}
	w.budget = h.Peek("interlock-budget")
	w.traceParent, w.traceState = h.Peek("traceparent"), h.Peek("tracestate")
	if n, ok := digits(h.Peek("x-stainless-retry-count")); ok && n <= math.MaxInt32 {
		w.clientRetry = int(n)
	}
	if err := w.readPatience(h); err != nil {
		return err
	}
	return w.readChoices(h)
}

func (w *wishes) readPatience(h Head) *openai.Error {
	if v := h.Peek("interlock-deadline"); len(v) > 0 {
		n, ok := digits(v)
		if !ok || n == 0 || n > int64(maxPatience/time.Millisecond) {
			return badHeader("interlock-deadline", "a whole number of milliseconds from 1 to 86400000")
		}
		w.patience = time.Duration(n) * time.Millisecond
	}
	timeout := h.Peek("x-stainless-timeout")
	if len(timeout) == 0 {
		return nil
	}
	s, err := strconv.ParseFloat(string(timeout), 64)
	if err != nil || !(s > 0) || s > maxPatience.Seconds() {
		return nil
	}
	if d := time.Duration(s * float64(time.Second)); d > 0 && (w.patience == 0 || d < w.patience) {
		w.patience = d
	}
	return nil
}

func (w *wishes) readChoices(h Head) *openai.Error {
	switch v := h.Peek("interlock-side-effects"); string(v) {
	case "":
	case "none":
		w.sideEffects = policy.NoSideEffects
	case "possible":
		w.sideEffects = policy.PossibleSideEffects
	default:
		return badHeader("interlock-side-effects", "none or possible")
	}
	switch v := h.Peek("interlock-substitution"); string(v) {
	case "":
	case "allow":
		w.substitution = policy.Allow
	case "deny":
		w.substitution = policy.Deny
	default:
		return badHeader("interlock-substitution", "allow or deny")
	}
	switch v := h.Peek("interlock-release"); string(v) {
	case "", "stream":
	case "buffered":
		w.buffered = true
	default:
		return badHeader("interlock-release", "stream or buffered")
	}
	return nil
}

func badHeader(name, allowed string) *openai.Error {
	e := openai.NewError(openai.InvalidRequest, "The header "+name+" is not valid: "+allowed+" is allowed.")
	e.Param = name
	return e
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

func digits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// callerKey finds the key in the request's headers: a bearer token, else x-api-key, else
// api-key; nil if there is none.
func callerKey(h Head) []byte {
	const bearer = "bearer "
	if v := h.Peek("authorization"); len(v) > len(bearer) && equalFold(v[:len(bearer)], bearer) {
		return trim(v[len(bearer):])
	}
	if v := h.Peek("x-api-key"); len(v) > 0 {
		return trim(v)
	}
	return trim(h.Peek("api-key"))
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// bytesAsString views bytes as a string without copying: only for look-ups and for values
// that outlive their use no longer than the bytes.
func bytesAsString(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}
