package jsonx

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value walks over the value at i. It returns the offset behind it, or a fault and where it is.
// depth is how many objects and arrays surround it.
func value(b []byte, i, depth int) (int, Fault) {
	if i >= len(b) {
		return len(b), Unfinished
	}
	switch kinds[b[i]] {
	case String:
		end, _, f := closing(b, i+1)
		if f != Sound {
			return end, f
		}
		return end + 1, Sound
	case Object:
		return object(b, i, depth+1)
	case Array:
		return array(b, i, depth+1)
	case Number:
		return number(b, i)
	case Bool:
		if b[i] == 't' {
			return literal(b, i, "true")
		}
		return literal(b, i, "false")
	case Null:
		return literal(b, i, "null")
	}
	return i, Unexpected
}

func object(b []byte, i, depth int) (int, Fault) {
	if depth > MaxDepth {
		return i, TooDeep
	}
	i = blanks(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, Sound
	}
	for {
		if i >= len(b) {
			return len(b), Unfinished
		}
		if b[i] != '"' {
			return i, Unexpected
		}
		end, _, f := closing(b, i+1)
		if f != Sound {
			return end, f
		}
		if i = blanks(b, end+1); i >= len(b) {
			return len(b), Unfinished
		}
		if b[i] != ':' {
			return i, Unexpected
		}
		if i, f = value(b, blanks(b, i+1), depth); f != Sound {
			return i, f
		}
		if i = blanks(b, i); i >= len(b) {
			return len(b), Unfinished
		}
		switch b[i] {
		case '}':
			return i + 1, Sound
		case ',':
			i = blanks(b, i+1)
		default:
			return i, Unexpected
		}
	}
}

func array(b []byte, i, depth int) (int, Fault) {
	if depth > MaxDepth {
		return i, TooDeep
	}
	i = blanks(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, Sound
	}
	var f Fault
	for {
		if i, f = value(b, i, depth); f != Sound {
			return i, f
		}
		if i = blanks(b, i); i >= len(b) {
			return len(b), Unfinished
		}
		switch b[i] {
		case ']':
			return i + 1, Sound
		case ',':
			i = blanks(b, i+1)
		default:
			return i, Unexpected
		}
	}
}

func literal(b []byte, i int, word string) (int, Fault) {
	end := i + len(word)
	if end > len(b) {
		if string(b[i:]) == word[:len(b)-i] {
			return len(b), Unfinished
		}
		return i, BadLiteral
	}
	if string(b[i:end]) != word {
		return i, BadLiteral
	}
	return end, Sound
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

func number(b []byte, i int) (int, Fault) {
	from := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		end := digits(b, i)
		if end == i {
			return from, BadNumber
		}
		i = end
	}
	if i < len(b) && b[i] == '.' {
		end := digits(b, i+1)
		if end == i+1 {
			return from, BadNumber
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
			return from, BadNumber
		}
		i = end
	}
	return i, Sound
}

// wholeFloat reads a number written with a fraction or an exponent.
func wholeFloat(raw []byte) (int64, bool) {
	if len(raw) > 40 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return 0, false
	}
	return int64(f), true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stop finds the first byte at or after i that ends a run of plain string contents: a quote, a
// backslash or a control character; len(b) when there is none. Eight bytes at a time: for each
// test the lowest high bit set is exact, and a false one can only stand above a true one.
func stop(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q := w ^ ones*'"'
		s := w ^ ones*'\\'
		if m := ((q-ones)&^q | (s-ones)&^s | (w-ones*0x20)&^w) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

// closing finds the quote that closes the string whose contents start at i, or a fault and where
// it is.
func closing(b []byte, i int) (end int, escaped bool, f Fault) {
	for {
		i = stop(b, i)
		if i >= len(b) {
			return len(b), escaped, Unfinished
		}
		switch b[i] {
		case '"':
			return i, escaped, Sound
		case '\\':
			escaped = true
			n := escape(b[i:])
			if n == 0 {
				if i+1 >= len(b) {
					return len(b), true, Unfinished
				}
				return i, true, BadEscape
			}
			i += n
		default:
			return i, escaped, ControlInString
		}
	}
}

// StringEnd finds the quote that closes the string whose contents start at i; false where they
// are not what a JSON string may hold, or it is not closed.
func StringEnd(b []byte, i int) (end int, ok bool) {
	end, _, f := closing(b, i)
	return end, f == Sound
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
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if hex[c] == 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

// hex holds one more than the value of a hexadecimal digit.
var hex = [256]uint8{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16,
	'A': 11, 'B': 12, 'C': 13, 'D': 14, 'E': 15, 'F': 16,
}
