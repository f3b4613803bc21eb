package sigv4

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
)

// appendCanonical appends the request in the form whose hash is signed. fields are sorted.
func appendCanonical(b []byte, r *Request, fields []Field) []byte {
	path, query, _ := strings.Cut(r.Path, "?")
	b = append(append(b, r.Method...), '\n')
	b = append(appendPath(b, path), '\n')
	b = append(appendQuery(b, query), '\n')
	for i := range fields {
		if i > 0 && compareNames(fields[i-1].Name, fields[i].Name) == 0 {
			b[len(b)-1] = ',' // the values of one name are a list
		} else {
			b = append(appendLower(b, fields[i].Name), ':')
		}
		b = append(appendTrimmed(b, fields[i].Value), '\n')
	}
	b = append(appendNames(append(b, '\n'), fields), '\n')
	return hex.AppendEncode(b, r.Body[:])
}

// appendPath appends the path without empty and dotted segments, encoded as it is sent, and so
// once more than that.
func appendPath(b []byte, path string) []byte {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		if path == "" {
			path = "/"
		}
		return appendEncoded(b, path, true)
	}
	var segments []string
	for s := range strings.SplitSeq(path, "/") {
		switch s {
		case "", ".":
		case "..":
			segments = segments[:max(len(segments)-1, 0)]
		default:
			segments = append(segments, s)
		}
	}
	for _, s := range segments {
		b = appendEncoded(append(b, '/'), s, false)
	}
	if last := path[strings.LastIndexByte(path, '/')+1:]; len(segments) == 0 || last == "" || last == "." || last == ".." {
		b = append(b, '/')
	}
	return b
}

// appendQuery appends the parameters, encoded anew and sorted by name and then by value.
func appendQuery(b []byte, query string) []byte {
	if query == "" {
		return b
	}
	type parameter struct{ name, value []byte }
	var all []parameter
	for part := range strings.SplitSeq(query, "&") {
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			all = append(all, parameter{reencoded(name), reencoded(value)})
		}
	}
	slices.SortFunc(all, func(a, b parameter) int {
		if c := bytes.Compare(a.name, b.name); c != 0 {
			return c
		}
		return bytes.Compare(a.value, b.value)
	})
	for i := range all {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, all[i].name...), '='), all[i].value...)
	}
	return b
}

// reencoded is a part of a query decoded, where it is encoded, and encoded as AWS does: a blank
// may have been sent as a plus.
func reencoded(s string) []byte {
	plain := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(s):
			var decoded [1]byte
			if _, err := hex.Decode(decoded[:], []byte(s[i+1:i+3])); err == nil {
				c = decoded[0]
				i += 2
			}
		}
		plain = append(plain, c)
	}
	return appendEncoded(nil, string(plain), false)
}

func appendEncoded(b []byte, s string, slashes bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; isUnreserved(c) || slashes && c == '/' {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '~'
}

// sortFields sorts by name; fields of one name stay in order.
func sortFields(fields []Field) {
	for i := 1; i < len(fields); i++ {
		for k := i; k > 0 && compareNames(fields[k-1].Name, fields[k].Name) > 0; k-- {
			fields[k-1], fields[k] = fields[k], fields[k-1]
		}
	}
}

func compareNames(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c, d := lower(a[i]), lower(b[i]); c != d {
			return int(c) - int(d)
		}
	}
	return len(a) - len(b)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func appendLower(b []byte, s string) []byte {
	for i := range len(s) {
		b = append(b, lower(s[i]))
	}
	return b
}

// appendTrimmed appends a value without blanks around it, and one where there are several.
func appendTrimmed(b []byte, value string) []byte {
	from, blank := len(b), false
	for i := range len(value) {
		if c := value[i]; c == ' ' || c == '\t' {
			blank = true
			continue
		}
		if blank && len(b) > from {
			b = append(b, ' ')
		}
		blank = false
		b = append(b, value[i])
	}
	return b
}

// appendNames appends the names that are signed, each once.
func appendNames(b []byte, fields []Field) []byte {
	for i := range fields {
		if i > 0 {
			if compareNames(fields[i-1].Name, fields[i].Name) == 0 {
				continue
			}
			b = append(b, ';')
		}
		b = appendLower(b, fields[i].Name)
	}
	return b
}
