package jsonx

import (
	"bytes"
	"slices"
)

// AppendCanonical appends the canonical form of a document: object members sorted by the bytes of
// their decoded keys (equal keys keep their order), no blanks, strings with the fewest escapes,
// numbers as written. It reports false, and appends nothing, when b is no JSON document.
//
// Unlike RFC 8785 it leaves numbers alone: 9007199254740993 must not become another number.
func AppendCanonical(dst, b []byte) ([]byte, bool) {
	if !Valid(b) {
		return dst, false
	}
	var r Reader
	r.Reset(b)
	return canonical(dst, &r), true
}

type member struct {
	key      []byte
	from, to int // its canonical form in dst
}

func canonical(dst []byte, r *Reader) []byte {
	switch r.Peek() {
	case Object:
		return canonicalObject(dst, r)
	case Array:
		dst = append(dst, '[')
		r.Enter()
		for n := 0; r.Item(); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = canonical(dst, r)
		}
		return append(dst, ']')
	case String:
		raw, escaped := r.Str()
		return AppendString(dst, Decoded(raw, escaped))
	}
	from, to := r.Skip()
	return append(dst, r.b[from:to]...)
}

func canonicalObject(dst []byte, r *Reader) []byte {
	var members []member
	dst = append(dst, '{')
	start := len(dst)
	r.Enter()
	for {
		_, at, ok := r.Key()
		if !ok {
			break
		}
		end, escaped, _ := closing(r.b, at+1)
		m := member{key: Decoded(r.b[at+1:end], escaped), from: len(dst)}
		dst = append(AppendString(dst, m.key), ':')
		dst = canonical(dst, r)
		m.to = len(dst)
		dst = append(dst, ',')
		members = append(members, m)
	}
	if len(members) == 0 {
		return append(dst, '}')
	}
	byKey := func(a, b member) int { return bytes.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(members, byKey) {
		slices.SortStableFunc(members, byKey)
		asWritten := bytes.Clone(dst[start:])
		dst = dst[:start]
		for _, m := range members {
			dst = append(append(dst, asWritten[m.from-start:m.to-start]...), ',')
		}
	}
	dst[len(dst)-1] = '}'
	return dst
}

// Compact replaces the line ends in b[from:], a valid document, by blanks: outside strings they
// mean nothing, and inside they cannot be.
func Compact(b []byte, from int) {
	for i := from; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
}
