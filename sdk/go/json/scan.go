package json

import "unicode/utf8"

// MaxDepth is how many objects and arrays may surround a value.
const MaxDepth = 128

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// check walks over the value at i and returns the offset behind it, -1 when it is not valid.
// depth is how many objects and arrays surround it.
func check(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return checkString(b, i)
	case '{', '[':
		if depth >= MaxDepth {
			return -1
		}
		return checkInside(b, i, depth+1)
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return checkNumber(b, i)
		}
	}
	return -1
}

func checkInside(b []byte, i, depth int) int {
	object := b[i] == '{'
	end := b[i] + 2 // '{' and '}' are two apart, as are '[' and ']'
	i = blanks(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if object {
			if i >= len(b) || b[i] != '"' {
				return -1
			}
			if i = checkString(b, i); i < 0 {
				return -1
			}
			i = blanks(b, i)
			if i >= len(b) || b[i] != ':' {
				return -1
			}
			i = blanks(b, i+1)
		}
		if i = check(b, i, depth); i < 0 {
			return -1
		}
		i = blanks(b, i)
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case end:
			return i + 1
		case ',':
			i = blanks(b, i+1)
		default:
			return -1
		}
	}
}

func literal(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

func checkNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		end := digits(b, i)
		if end == i {
			return -1
		}
		i = end
	}
	if i < len(b) && b[i] == '.' {
		end := digits(b, i+1)
		if end == i+1 {
			return -1
		}
		i = end
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digits(b, i)
		if end == i {
			return -1
		}
		i = end
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain finds the first byte at or after i that is not printable ASCII or is a quote or a
// backslash. Eight bytes at a time; a false find can only stand above a true one.
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		p := b[i : i+8 : i+8]
		w := uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
			uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
		q := w ^ ones*'"'
		s := w ^ ones*'\\'
		if ((q-ones)&^q|(s-ones)&^s|(w-ones*0x20)|w)&highs != 0 {
			break
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// checkString walks over the string whose opening quote is at i.
func checkString(b []byte, i int) int {
	for i++; ; {
		i = plain(b, i)
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				return -1
			}
			i += n
		case c < 0x20:
			return -1
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
}

// escape is the length of the escape that b starts with, 0 when it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(b[2:]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 reads four hexadecimal digits, -1 when there are not four.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c-'a' <= 5:
			c -= 'a' - 10
		case c-'A' <= 5:
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// skip walks over the value at i of a document that is valid, and returns the offset behind it.
// Of one that is not it returns anything from i+1 to len(b), so that a caller always ends.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if i++; depth == 0 {
				return i
			}
		}
		return len(b)
	}
	for i++; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; ; {
		i = plain(b, i)
		switch {
		case i >= len(b):
			return len(b)
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			i += 2
		default:
			i++
		}
	}
}
