package json

import (
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how many objects and arrays may surround a value.
const MaxDepth = 128

func blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// check walks over the value at i and returns the offset behind it, -1 when it is not valid. around
// is how many objects and arrays surround it. It is one loop and not a recursion: in a module a
// call costs as much as a dozen bytes.
func check(b []byte, i, around int) int {
	var ends [MaxDepth]byte // what ends each of the objects and arrays that are open
	depth := around
	for {
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			i, _ = checkString(b, i)
		case c|0x20 == '{': // or '['
			if depth >= MaxDepth {
				return -1
			}
			end := c + 2 // '{' and '}' are two apart, as are '[' and ']'
			i = blanks(b, i+1)
			if i < len(b) && b[i] == end {
				i++
				break
			}
			ends[depth] = end
			depth++
			if end == '}' {
				i = checkKey(b, i)
			}
			if i < 0 {
				return -1
			}
			continue
		case c == '-' || c-'0' <= 9:
			i = checkNumber(b, i)
		case c == 't':
			i = literal(b, i, "true")
		case c == 'f':
			i = literal(b, i, "false")
		case c == 'n':
			i = literal(b, i, "null")
		default:
			return -1
		}
		if i < 0 {
			return -1
		}
		for { // behind a value
			if depth == around {
				return i
			}
			i = blanks(b, i)
			if i >= len(b) {
				return -1
			}
			c, end := b[i], ends[depth-1]
			i++
			if c == end {
				depth--
				continue
			}
			if c != ',' {
				return -1
			}
			i = blanks(b, i)
			if end == '}' {
				if i = checkKey(b, i); i < 0 {
					return -1
				}
			}
			break
		}
	}
}

// checkKey walks over a member's key, which is to begin at i, and the colon, and returns where the
// value begins.
func checkKey(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	if i, _ = checkString(b, i); i < 0 {
		return -1
	}
	return checkColon(b, i)
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

// word is the eight bytes at i, of which there must be as many.
func word(b []byte, i int) uint64 {
	p := b[i : i+8 : i+8]
	return uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
		uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
}

// ending has the highest bit of each byte set that is a quote or a backslash. Bits above the
// lowest that is set may be wrong.
func ending(w uint64) uint64 {
	q := w ^ ones*'"'
	s := w ^ ones*'\\'
	return ((q-ones)&^q | (s-ones)&^s) & highs
}

// special is ending for bytes that are not printable ASCII too.
func special(w uint64) uint64 { return ending(w) | (w-ones*0x20|w)&highs }

// lowest is the offset of the byte with the lowest bit.
func lowest(mark uint64) int { return bits.TrailingZeros64(mark) >> 3 }

// hasEscape says whether there is a backslash in b.
func hasEscape(b []byte) bool { return escapeAt(b) < len(b) }

// escapeAt is the offset of the first backslash in b, len(b) where there is none. For the short
// strings of a document it is cheaper than package bytes, which is two calls.
func escapeAt(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		s := word(b, i) ^ ones*'\\'
		if mark := (s - ones) &^ s & highs; mark != 0 {
			return i + lowest(mark)
		}
	}
	for i < len(b) && b[i] != '\\' {
		i++
	}
	return i
}

// checkColon walks over a colon and the blanks around it.
func checkColon(b []byte, i int) int {
	if i = blanks(b, i); i >= len(b) || b[i] != ':' {
		return -1
	}
	return blanks(b, i+1)
}

// checkString walks over the string whose opening quote is at i, and says whether it has escapes.
func checkString(b []byte, i int) (end int, escaped bool) {
	i++
	for {
		for i+8 <= len(b) {
			if mark := special(word(b, i)); mark != 0 {
				i += lowest(mark)
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1, false
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				return -1, false
			}
			i += n
			escaped = true
		case c < 0x20:
			return -1, false
		case c < utf8.RuneSelf: // of the last few bytes
			i++
		default:
			for i < len(b) && b[i] >= utf8.RuneSelf {
				r, n := utf8.DecodeRune(b[i:])
				if r == utf8.RuneError && n == 1 {
					return -1, false
				}
				i += n
			}
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
	c := b[i]
	if c == '"' {
		end, _ := skipString(b, i)
		return end
	}
	if c|0x20 == '{' {
		return skipInside(b, i)
	}
	for i++; i < len(b); i++ {
		if c := b[i]; c == ',' || c|0x20 == '}' || c <= ' ' {
			return i
		}
	}
	return i
}

// skipInside is skip for an object or an array. Strings are passed over here, and not by a call.
func skipInside(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		c := b[i]
		i++
		if c != '"' {
			if c|0x20 == '{' {
				depth++
			} else if c|0x20 == '}' {
				if depth--; depth == 0 {
					return i
				}
			}
			continue
		}
		for i < len(b) {
			if i+8 <= len(b) {
				mark := ending(word(b, i))
				if mark == 0 {
					i += 8
					continue
				}
				i += lowest(mark)
			}
			c := b[i]
			i++
			if c == '"' {
				break
			}
			if c == '\\' {
				i++
			}
		}
	}
	return len(b)
}

// skipString is skip for a string, and says whether it has escapes.
func skipString(b []byte, i int) (end int, escaped bool) {
	i++
	for i < len(b) {
		if i+8 <= len(b) {
			mark := ending(word(b, i))
			if mark == 0 {
				i += 8
				continue
			}
			i += lowest(mark)
		}
		c := b[i]
		i++
		if c == '"' {
			return i, escaped
		}
		if c == '\\' {
			escaped = true
			i++
		}
	}
	return len(b), escaped
}
