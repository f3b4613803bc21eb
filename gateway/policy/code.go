package policy

import "strings"

const maxCode = 64

// NormaliseCode returns a provider's error code or type as policies see it: lower-case, at
// most 64 bytes, of letters, digits and "_-.:" only (anything else becomes "_"). It does not
// allocate where nothing has to change.
func NormaliseCode(s string) string {
	if len(s) > maxCode {
		s = s[:maxCode]
	}
	if strings.IndexFunc(s, func(r rune) bool { return codeRune(r) != r }) < 0 {
		return s
	}
	return strings.Map(codeRune, strings.ToValidUTF8(s, "_"))
}

func codeRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-', r == '.', r == ':':
		return r
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	default:
		return '_'
	}
}
