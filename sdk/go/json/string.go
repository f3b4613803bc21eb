package json

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Contents is what stands between a string's quotes, escapes and all; nil when the value is no
// string.
func (v Value) Contents() []byte {
	if !v.IsString() {
		return nil
	}
	return v[1 : len(v)-1 : len(v)-1]
}

// Text is the text of a string: its contents themselves where nothing is escaped, else a new
// slice. nil when the value is no string.
func (v Value) Text() []byte {
	raw := v.Contents()
	if !hasEscape(raw) {
		return raw
	}
	return appendDecoded(make([]byte, 0, len(raw)), raw)
}

// String is the text of a string, "" when the value is none. It allocates.
func (v Value) String() string { return string(v.Text()) }

const handle = "interlock:blob:"

// IsHandle says whether the value is the host's word for a string of 32 KiB or more that it kept
// to itself. Such a string must stay all of a string: it cannot be joined to another or looked into.
func (v Value) IsHandle() bool {
	return len(v) > len(handle) && v[0] == '"' && string(v[1:1+len(handle)]) == handle
}

// Is says whether the value is a string with that text.
func (v Value) Is(text string) bool {
	raw := v.Contents()
	if len(raw) < len(text) || raw == nil { // what is decoded is never longer
		return false
	}
	return string(v.Text()) == text
}

// AppendDecoded appends the text of a string; nothing when the value is none.
func (v Value) AppendDecoded(dst []byte) []byte { return appendDecoded(dst, v.Contents()) }

// DecodedLen is the length in bytes of the text of a string, 0 when the value is none.
func (v Value) DecodedLen() int {
	n := 0
	for raw := v.Contents(); len(raw) > 0; {
		k := escapeAt(raw)
		if k == len(raw) {
			return n + len(raw)
		}
		r, used := decodeEscape(raw[k:])
		if used == 0 {
			return n + len(raw)
		}
		n += k + utf8.RuneLen(r)
		raw = raw[k+used:]
	}
	return n
}

func appendDecoded(dst, raw []byte) []byte {
	for {
		k := escapeAt(raw)
		if k == len(raw) {
			return append(dst, raw...)
		}
		r, n := decodeEscape(raw[k:])
		if n == 0 { // not valid JSON: as it is
			return append(dst, raw...)
		}
		dst = utf8.AppendRune(append(dst, raw[:k]...), r)
		raw = raw[k+n:]
	}
}

// decodeEscape reads the escape that b starts with, a pair of surrogates as one. It returns a
// length of 0 when there is none.
func decodeEscape(b []byte) (r rune, n int) {
	if n = escape(b); n == 0 {
		return 0, 0
	}
	switch b[1] {
	case 'b':
		return '\b', n
	case 'f':
		return '\f', n
	case 'n':
		return '\n', n
	case 'r':
		return '\r', n
	case 't':
		return '\t', n
	case 'u':
		r = hex4(b[2:])
		if !utf16.IsSurrogate(r) {
			return r, n
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(b[8:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, n
	}
	return rune(b[1]), n // quote, backslash, slash
}
