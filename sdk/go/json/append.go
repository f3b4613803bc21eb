package json

import (
	"strconv"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// AppendQuote appends text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendQuote[T []byte | string](dst []byte, text T) []byte {
	dst = append(dst, '"')
	dst = AppendEscaped(dst, text)
	return append(dst, '"')
}

// AppendEscaped appends what AppendQuote does, without the quotes.
func AppendEscaped[T []byte | string](dst []byte, text T) []byte {
	// A slice begins as a string does: so there is one function below, not one for each.
	return appendEscaped(dst, *(*string)(unsafe.Pointer(&text))) // #nosec G103 -- text outlives the call
}

func appendEscaped(dst []byte, text string) []byte {
	raw := unsafe.Slice(unsafe.StringData(text), len(text)) // #nosec G103 -- not written to
	from := 0
	for i := 0; i < len(text); {
		if i+8 <= len(text) {
			mark := special(word(raw, i))
			if mark == 0 {
				i += 8
				continue
			}
			i += lowest(mark)
		}
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			end := min(i+utf8.UTFMax, len(text))
			r, n := utf8.DecodeRuneInString(text[i:end])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, text[from:i]...), "\ufffd"...)
			i++
			from = i
			continue
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(dst, text[from:]...)
}

// AppendQuoteRaw appends a JSON string whose text is the JSON text v, as tool-call arguments are
// written.
func AppendQuoteRaw(dst []byte, v Value) []byte { return AppendQuote(dst, []byte(v)) }

// AppendContents appends a string value with each half of a surrogate pair replaced by U+FFFD, so
// that it means the same alone and joined to others. It is the contents only, without quotes.
func AppendContents(dst []byte, v Value) []byte {
	raw := v.Contents()
	for {
		k := escapeAt(raw)
		if k == len(raw) {
			return append(dst, raw...)
		}
		r, n := decodeEscape(raw[k:])
		if n == 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:k]...)
		if r == utf8.RuneError && n == 6 {
			dst = append(dst, `\ufffd`...)
		} else {
			dst = append(dst, raw[k:k+n]...)
		}
		raw = raw[k+n:]
	}
}

// Compact appends the value without blanks between its parts. Strings stay as they are written.
func Compact(dst []byte, v Value) []byte {
	for i := 0; i < len(v); {
		switch v[i] {
		case '"':
			end, _ := skipString(v, i)
			dst = append(dst, v[i:end]...)
			i = end
		case ' ', '\n', '\r', '\t':
			i++
		default:
			dst = append(dst, v[i])
			i++
		}
	}
	return dst
}

// AppendKey appends a member's key and the colon, and a comma before it unless it is an object's
// first. key must need no escapes.
//
// It and its neighbours are not inlined: an adapter calls them in a hundred places, and each copy
// would be half a kilobyte of its module.
//
//go:noinline
func AppendKey(dst []byte, key string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(dst, '"'), key...)
	return append(dst, '"', ':')
}

// AppendMember appends a member with the value as it is written; nothing when it is absent.
//
//go:noinline
func AppendMember(dst []byte, key string, v Value) []byte {
	if len(v) == 0 {
		return dst
	}
	return append(AppendKey(dst, key), v...)
}

// AppendText appends a member whose value is a string with that text.
func AppendText[T []byte | string](dst []byte, key string, text T) []byte {
	return AppendQuote(AppendKey(dst, key), text)
}

// AppendUint appends a member whose value is that number.
func AppendUint(dst []byte, key string, n uint64) []byte {
	return strconv.AppendUint(AppendKey(dst, key), n, 10)
}

// AppendBool appends a member whose value is a boolean.
func AppendBool(dst []byte, key string, b bool) []byte {
	return strconv.AppendBool(AppendKey(dst, key), b)
}

// AppendComma appends a comma unless what was appended last opens an object or an array.
//
//go:noinline
func AppendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '[' && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return dst
}
