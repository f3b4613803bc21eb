package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Reason says how a call failed.
type Reason uint8

const (
	Trapped   Reason = iota // the guest trapped: a fault, or out of memory
	Exhausted               // its budget of work was used up
	Killed                  // it ran into the wall-clock limit
	Oversized               // its result is larger than any may be
	Malformed               // its result, or a pointer, is not what the ABI has
	NotStart                // no instance of it could be started
	Circuit                 // it failed too often and is left alone for a while
	TooLarge                // the input does not fit in the guest
	Busy                    // no instance was free in time
	Cancelled               // the caller stopped waiting
	Closed                  // the plugin was closed
)

var reasonNames = [...]string{
	"trap", "budget_exhausted", "killed", "result_oversized", "result_malformed", "start_failed",
	"circuit", "input_too_large", "busy", "cancelled", "closed",
}

// String returns the reason as logs have it.
func (r Reason) String() string { return reasonNames[r] }

// Failure is a call that gave neither a result nor an error of the guest's.
type Failure struct {
	Plugin string
	Reason Reason
	Err    error  // may be nil
	Said   string // what the guest wrote in that call, cut; only with Options.KeepOutput
}

func (f *Failure) Error() string { return "plugin " + f.Plugin + ": " + f.Detail() }

// Detail is the error without the plugin's name, for where that is said already.
func (f *Failure) Detail() string {
	if f.Err != nil {
		return f.Reason.String() + ": " + f.Err.Error()
	}
	return f.Reason.String()
}

func (f *Failure) Unwrap() error { return f.Err }

// GuestError is an error that a guest answered with.
type GuestError struct {
	Code    string // one of the ABI's
	Message string // at most 4 KiB; for the caller with bad_request and unsupported_parameter
	Param   string // with unsupported_parameter
	Status  int    // 0: the code's own, else 400–599
}

func (e *GuestError) Error() string {
	if e.Param != "" {
		return fmt.Sprintf("%s (%s): %s", e.Code, e.Param, e.Message)
	}
	return e.Code + ": " + e.Message
}

// The codes of a GuestError.
const (
	CodeBadRequest           = "bad_request"
	CodeUnsupportedParameter = "unsupported_parameter"
	CodeUnsupported          = "unsupported"
	CodeUpstreamMalformed    = "upstream_malformed"
	CodeConfig               = "config"
	CodeInternal             = "internal"
)

var codes = []string{
	CodeBadRequest, CodeUnsupportedParameter, CodeUnsupported, CodeUpstreamMalformed, CodeConfig, CodeInternal,
}

const (
	maxMessage = 4096
	maxParam   = 256
)

var errGuestError = errors.New("the error it answered with is not as the ABI has it")

// decodeError reads the result of a call that a guest ended with an error.
func decodeError(b []byte) (*GuestError, error) {
	text := func() string {
		if len(b) < 4 {
			b = nil
			return ""
		}
		n := uint64(binary.LittleEndian.Uint32(b))
		if n > uint64(len(b)-4) {
			b = nil
			return ""
		}
		s := b[4 : 4+n]
		b = b[4+n:]
		return string(s)
	}
	e := &GuestError{Code: text(), Message: text(), Param: text()}
	if len(b) < 4 || !slices.Contains(codes, e.Code) {
		return nil, errGuestError
	}
	e.Status = int(min(binary.LittleEndian.Uint32(b), 1000))
	if e.Status != 0 && (e.Status < 400 || e.Status > 599) {
		return nil, errGuestError
	}
	e.Message, e.Param = clean(e.Message, maxMessage), clean(e.Param, maxParam)
	return e, nil
}

// clean makes a guest's text fit for a log or an answer.
func clean(s string, most int) string {
	if len(s) > most {
		s = s[:most]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// DecodeError reads the error result of a call: a *GuestError, or why it is none.
func DecodeError(b []byte) error {
	e, err := decodeError(b)
	if err != nil {
		return err
	}
	return e
}
