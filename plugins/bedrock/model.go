package bedrock

import (
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// path is the request's: everything in the model's name but letters, digits and -_.~ is
// percent-encoded, the slashes of an ARN too.
func path(model string, stream bool) string {
	const upper = "0123456789ABCDEF"
	b := append(make([]byte, 0, len(model)+32), "/model/"...)
	for i := 0; i < len(model); i++ {
		c := model[i]
		if isWord(c) || c == '-' || c == '_' || c == '.' || c == '~' {
			b = append(b, c)
		} else {
			b = append(b, '%', upper[c>>4], upper[c&15])
		}
	}
	b = append(b, "/converse"...)
	if stream {
		b = append(b, "-stream"...)
	}
	return string(b)
}

func isWord(c byte) bool { return c-'0' <= 9 || c-'a' < 26 || c-'A' < 26 }

// base is a model's name without what stands before it in an ARN and without the region of an
// inference profile: us.anthropic.claude-opus-4-6-v1 is anthropic.claude-opus-4-6-v1.
func base(model string) string {
	for i := len(model) - 1; i >= 0; i-- {
		if model[i] == '/' {
			model = model[i+1:]
			break
		}
	}
	if first, rest, ok := cut(model, '.'); ok {
		if len(first) == 2 || first == "us-gov" || first == "apac" || first == "global" {
			return rest
		}
	}
	return model
}

// vendor is who made the model: what reasoning that it signed can go back to. Where the name does
// not tell (the ARN of an application's inference profile) it is the name itself.
func vendor(model string) string {
	b := base(model)
	if first, _, ok := cut(b, '.'); ok {
		return first
	}
	return model
}

func cut(s string, at byte) (before, after string, found bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == at {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

// claude is the version of a Claude model as major*100 + minor: 406 for claude-opus-4-6-v1. ok is
// false when the model is none. Names without a version are those of newer lines.
func claude(model string) (version int, ok bool) {
	b := base(model)
	const prefix = "anthropic.claude-"
	if !hasPrefix(b, prefix) {
		return 0, false
	}
	rest := b[len(prefix):]
	if n, tail := leading(rest); n >= 0 { // claude-3-7-sonnet-20250219-v1:0
		minor, _ := leading(skipDash(tail))
		return n*100 + minorVersion(minor), true
	}
	if rest[:min(1, len(rest))] == "v" || hasPrefix(rest, "instant") { // claude-v2:1
		return 200, true
	}
	_, rest, found := cut(rest, '-') // behind opus, sonnet, haiku
	major, tail := leading(rest)
	if !found || major < 0 {
		return 9900, true
	}
	minor, _ := leading(skipDash(tail))
	return major*100 + minorVersion(minor), true
}

// minorVersion is 0 where a date stands in the version's place, or nothing.
func minorVersion(n int) int {
	if n < 0 || n > 99 {
		return 0
	}
	return n
}

func skipDash(s string) string {
	if len(s) > 0 && s[0] == '-' {
		return s[1:]
	}
	return ""
}

// leading reads the digits that s begins with; -1 when there are none.
func leading(s string) (n int, rest string) {
	i := 0
	for ; i < len(s) && i < 9 && s[i]-'0' <= 9; i++ {
		n = n*10 + int(s[i]-'0')
	}
	if i == 0 {
		return -1, s
	}
	return n, s[i:]
}

// blank says whether a string has no character but blanks: the provider refuses such a text.
func blank(text json.Value) bool {
	raw := text.Contents()
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case ' ':
		case '\\':
			if i++; i >= len(raw) || raw[i] != 'n' && raw[i] != 't' && raw[i] != 'r' {
				return false
			}
		default:
			return false
		}
	}
	return true
}
