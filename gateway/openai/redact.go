package openai

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is the longest message that Redact lets through, in bytes.
const maxMessage = 2000

// shortestSecret is the shortest secret that Redact looks for: a shorter one would tear words.
const shortestSecret = 4

const (
	redactedSecret  = "[redacted]"
	redactedURL     = "[url]"
	redactedAccount = "[account]"
)

// leaks finds what must not reach a caller, one group per kind: credentials, places, accounts.
var leaks = regexp.MustCompile(`(?i)` + strings.Join([]string{
	// 1: credentials
	`(\bbearer\s+[^\s"',;]+` +
		`|\b(?:sk|pk|rk|gsk|xai|hf|pplx|csk|nvapi|ak|fw|ghp|gho|glpat|r8|tok|key|api)[-_][a-z0-9*][a-z0-9*_.\-]{5,}` +
		`|\bAIza[a-z0-9_\-*]{10,}|\b(?:AKIA|ASIA)[a-z0-9]{12,}|\bya29\.[a-z0-9_\-.]+` +
		`|\beyJ[a-z0-9_\-]{8,}(?:\.[a-z0-9_\-]*)*` +
		`|\bapi[_ \-]?key["']?\s*[:=]\s*["']?[^\s"',;.]{4,}` +
		`|\b[a-z0-9]{32,}[a-z0-9_\-]*` +
		`|[a-z0-9_\-]*\*{4,}[a-z0-9_\-]*)`,
	// 2: places
	`(\b[a-z][a-z0-9+.\-]*://[^\s"'<>\x60]+|\bwww\.[^\s"'<>\x60]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)`,
	// 3: accounts
	`(\barn:[^\s"']+|[a-z0-9._%+\-]+@[a-z0-9.\-]+\.[a-z]{2,}` +
		`|\b(?:org|proj|project|acct|account|user|team|tenant|workspace|ws|cus|sub)[-_][a-z0-9]{8,}\b` +
		`|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b\d{12}\b)`,
}, "|"))

// Redact makes a provider's text fit for a caller and a log: it removes the secrets given, what
// looks like a credential, URLs and addresses, account, organisation and project IDs, and control
// characters, and cuts the text at 2,000 bytes.
func Redact(message string, secrets ...string) string {
	if message == "" {
		return ""
	}
	message = strings.Map(printable, strings.ToValidUTF8(message, "\uFFFD"))
	for _, s := range longestFirst(secrets) {
		if len(s) >= shortestSecret {
			message = strings.ReplaceAll(message, s, redactedSecret)
		}
	}
	message = replaceLeaks(message)
	return strings.TrimSpace(cut(message, maxMessage))
}

func longestFirst(secrets []string) []string {
	if len(secrets) < 2 {
		return secrets
	}
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

func replaceLeaks(s string) string {
	var b strings.Builder
	from := 0
	for _, m := range leaks.FindAllStringSubmatchIndex(s, -1) {
		found, mark := trimEnd(s[m[0]:m[1]]), redactedSecret
		switch {
		case m[4] >= 0:
			mark = redactedURL
		case m[6] >= 0:
			mark = redactedAccount
			if isWord(found) {
				continue
			}
		case isWord(found):
			continue
		}
		b.WriteString(s[from:m[0]])
		b.WriteString(mark)
		from = m[0] + len(found)
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// trimEnd takes off what ends the sentence or the brackets around a match: the full stop of a
// sentence is no part of what it ends with. A bracket that the match itself opens stays, such as
// that of a mark that stands there already.
func trimEnd(s string) string {
	for s != "" {
		last := s[len(s)-1]
		if !strings.ContainsRune(".,;:!?)]}", rune(last)) {
			break
		}
		if i := strings.IndexByte(")]}", last); i >= 0 && strings.Count(s, "([{"[i:i+1]) >= strings.Count(s, ")]}"[i:i+1]) {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// isWord says that a match is made of lower-case letters and separators only: "user_information",
// "api_key_required". IDs and credentials have digits, capitals or stars.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// printable drops what could forge a log line or turn a text around.
func printable(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
		return -1
	}
	return r
}

// cut shortens s to at most n bytes, between runes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
