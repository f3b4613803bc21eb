package downstream

import (
	"bytes"
	"math"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/flow"
)

// flaw is what is wrong with a request's head; empty = nothing. It is part of a message.
type flaw string

// The flaws that the HTTP library lets pass.
const (
	flawVersion flaw = "the version is neither HTTP/1.1 nor HTTP/1.0"
	flawFraming flaw = "content-length and transfer-encoding exclude each other"
	flawCoding  flaw = "chunked is the only transfer-encoding"
	flawName    flaw = "a header's name holds a character that no name may hold"
	flawFold    flaw = "a header's value goes on in a second line"
	flawTwice   flaw = "an interlock header stands twice"
	flawLine    flaw = "a header line does not end in CR LF, or holds a lone CR"
)

// inspect looks at a head that the HTTP library has accepted for what it should have
// refused: two readings of one message are how requests are smuggled (RFC 9112, sections 2.2,
// 5 and 6.3). Fields is the block of header lines as it came, version the end of the request
// line. Length is the content-length; 0 where there is none.
func inspect(version, fields []byte) (length int64, _ flaw) {
	if v := string(version); v != "HTTP/1.1" && v != "HTTP/1.0" {
		return 0, flawVersion
	}
	var sized, coded bool
	var wishes [8][]byte // names of the gateway's own headers: of two values one would be lost
	wished := wishes[:0]
	for len(fields) > 0 {
		end := bytes.IndexByte(fields, '\n')
		if end < 1 || bytes.IndexByte(fields[:end], '\r') != end-1 {
			return 0, flawLine
		}
		line := fields[:end-1]
		fields = fields[end+1:]
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return 0, flawFold
		}
		colon := tokenLength(line)
		if colon == 0 || colon == len(line) || line[colon] != ':' {
			return 0, flawName
		}
		switch name, value := line[:colon], line[colon+1:]; {
		case colon == len("content-length") && equalFold(name, "content-length"):
			sized, length = true, number(bytes.Trim(value, " \t"))
		case colon == len("transfer-encoding") && equalFold(name, "transfer-encoding"):
			coded = true
			if !equalFold(bytes.Trim(value, " \t"), "chunked") {
				return 0, flawCoding
			}
		case colon > len(wishPrefix) && equalFold(name[:len(wishPrefix)], wishPrefix):
			for _, before := range wished {
				if bytes.EqualFold(before, name) {
					return 0, flawTwice
				}
			}
			wished = append(wished, name)
		}
	}
	if sized && coded {
		return 0, flawFraming
	}
	return length, ""
}

const wishPrefix = "interlock-"

// number reads a content-length that the HTTP library has accepted.
func number(digits []byte) (n int64) {
	for _, c := range digits {
		if c < '0' || c > '9' || n > math.MaxInt64/10-1 {
			return math.MaxInt64
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// tokenLength counts the leading bytes that a header's name may hold (RFC 9110, 5.6.2).
func tokenLength(line []byte) int {
	for i, c := range line {
		if !tokenBytes[c] {
			return i
		}
	}
	return len(line)
}

var tokenBytes = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// equalFold compares b with a lower-case ASCII string, whatever the case of b.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
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

// head is a request's header fields, as an exchange asks for them. The HTTP library spells each
// name anew before it looks for it; most of the names that are asked for are not there, and a
// set of the first letters that are there says so at once.
type head struct {
	fields   *fasthttp.RequestHeader
	initials uint32
}

// headOf reads which first letters there are.
func headOf(h *fasthttp.RequestHeader) head {
	set := uint32(0)
	for fields := h.RawHeaders(); len(fields) > 0; {
		set |= initial(fields[0])
		end := bytes.IndexByte(fields, '\n')
		if end < 0 {
			break
		}
		fields = fields[end+1:]
	}
	return head{h, set}
}

// Peek returns the first value of a header by its lower-case name; nil where there is none.
func (h *head) Peek(name string) []byte {
	if name == "" || h.initials&initial(name[0]) == 0 {
		return nil
	}
	return h.fields.Peek(name)
}

// initial is the bit of a letter, in any case; what is no letter shares one.
func initial(c byte) uint32 {
	if c |= 0x20; c >= 'a' && c <= 'z' {
		return 1 << (c - 'a')
	}
	return 1 << 31
}

var _ flow.Head = (*head)(nil)
