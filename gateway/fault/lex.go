package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenWord  tokenKind = iota // a bare word, number, duration or size
	tokenText                   // a quoted string; text is what it means
	tokenJSON                   // a JSON object or array; text is compact
	tokenRef                    // $name; text is the name
	tokenOpen                   // the { that opens a block
	tokenClose                  // the } that closes one
)

type token struct {
	kind      tokenKind
	text      string
	line, col int
}

// String shows a token as it is written in canonical form.
func (t token) String() string {
	switch t.kind {
	case tokenText:
		return quoteText(t.text)
	case tokenJSON:
		return spaceJSON(t.text)
	case tokenRef:
		return "$" + t.text
	case tokenOpen:
		return "{"
	case tokenClose:
		return "}"
	default:
		return t.text
	}
}

// logicalLine is one line of the text, or several where a JSON literal spans
// them.
type logicalLine struct {
	indented bool
	tokens   []token
	comment  string // "# …", "" where there is none
	broken   bool   // a fault was reported; the tokens before it are there
	line     int
}

// lexer cuts a script into logical lines. A fault inside a line drops the rest
// of that line and reading goes on, so that every fault is reported.
type lexer struct {
	name      string
	src       string
	at        int // offset of the next byte
	line      int
	lineStart int // offset of the line's first byte
	errs      []error
}

const maxNesting = 64 // of JSON literals

func (l *lexer) fail(line, col int, format string, args ...any) {
	l.errs = append(l.errs, &SyntaxError{Name: l.name, Line: line, Column: col, Message: fmt.Sprintf(format, args...)})
}

func (l *lexer) col() int { return l.at - l.lineStart + 1 }

func (l *lexer) lines() []logicalLine {
	var out []logicalLine
	l.line = 1
	for l.at < len(l.src) {
		out = append(out, l.next())
	}
	return out
}

// next reads one logical line and the newline after it.
func (l *lexer) next() logicalLine {
	ll := logicalLine{line: l.line}
	ll.indented = l.src[l.at] == ' ' || l.src[l.at] == '\t'
	for {
		l.blanks()
		if l.at >= len(l.src) || l.src[l.at] == '\n' {
			break
		}
		if l.src[l.at] == '#' {
			ll.comment = strings.TrimRight(l.src[l.at:l.endOfLine()], " \t\r")
			l.at = l.endOfLine()
			break
		}
		t, ok := l.token(ll.tokens)
		if !ok {
			l.at = l.endOfLine()
			ll.broken = true
			break
		}
		ll.tokens = append(ll.tokens, t)
	}
	l.newline()
	return ll
}

func (l *lexer) blanks() {
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case ' ', '\t':
			l.at++
		case '\r':
			if l.at+1 < len(l.src) && l.src[l.at+1] != '\n' {
				return
			}
			l.at++
		default:
			return
		}
	}
}

func (l *lexer) endOfLine() int {
	if i := strings.IndexByte(l.src[l.at:], '\n'); i >= 0 {
		return l.at + i
	}
	return len(l.src)
}

func (l *lexer) newline() {
	if l.at < len(l.src) {
		l.at++
	}
	l.line++
	l.lineStart = l.at
}

func (l *lexer) token(before []token) (token, bool) {
	t := token{line: l.line, col: l.col()}
	switch c := l.src[l.at]; {
	case c == '"':
		return l.quoted(t)
	case c == '{' && len(before) > 0 && before[0].kind == tokenWord && blockWords[before[0].text]:
		l.at++
		t.kind = tokenOpen
		return t, true
	case c == '}':
		l.at++
		t.kind = tokenClose
		return t, true
	case c == '{' || c == '[':
		return l.json(t)
	case c == '$':
		l.at++
		t.kind, t.text = tokenRef, l.run(isNameByte)
		if t.text == "" {
			l.fail(t.line, t.col, "a name must follow $, as in $greeting")
			return t, false
		}
		return t, true
	case isWordByte(c):
		t.text = l.run(isWordByte)
		return t, true
	default:
		r, _ := utf8.DecodeRuneInString(l.src[l.at:])
		l.fail(t.line, t.col, "unexpected %q; allowed: a word, a number, a \"string\", {JSON}, [JSON], $name, # comment", r)
		return t, false
	}
}

// blockWords are the words whose { opens a block rather than a JSON literal.
var blockWords = map[string]bool{"repeat": true}

func isNameByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWordByte(c byte) bool { return isNameByte(c) || strings.IndexByte("./:*%+=", c) >= 0 }

func (l *lexer) run(in func(byte) bool) string {
	start := l.at
	for l.at < len(l.src) && in(l.src[l.at]) {
		l.at++
	}
	return l.src[start:l.at]
}

func (l *lexer) quoted(t token) (token, bool) {
	t.kind = tokenText
	var b strings.Builder
	for l.at++; l.at < len(l.src) && l.src[l.at] != '\n'; {
		switch c := l.src[l.at]; c {
		case '"':
			l.at++
			t.text = b.String()
			return t, true
		case '\\':
			if !l.escape(&b) {
				return t, false
			}
		default:
			b.WriteByte(c)
			l.at++
		}
	}
	l.fail(t.line, t.col, `the string has no closing " on its line`)
	return t, false
}

// escape reads one backslash escape of a string.
func (l *lexer) escape(b *strings.Builder) bool {
	line, col := l.line, l.col()
	rest := l.src[l.at+1 : l.endOfLine()]
	if rest != "" {
		if i := strings.IndexByte(`nrt0\"`, rest[0]); i >= 0 {
			b.WriteByte("\n\r\t\x00\\\""[i])
			l.at += 2
			return true
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]
		if digits > 0 && len(rest) > digits {
			n, err := strconv.ParseUint(rest[1:1+digits], 16, 32)
			if err == nil && (digits == 2 || utf8.ValidRune(rune(n))) {
				if digits == 2 {
					b.WriteByte(byte(n))
				} else {
					b.WriteRune(rune(n))
				}
				l.at += 2 + digits
				return true
			}
		}
	}
	l.fail(line, col, `unknown escape; allowed: \n \r \t \0 \\ \" \xHH \uHHHH \UHHHHHHHH`)
	return false
}

// json reads a JSON literal, which may span lines, up to its closing bracket.
func (l *lexer) json(t token) (token, bool) {
	t.kind = tokenJSON
	start, depth, inText := l.at, 0, false
	for i := l.at; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				l.fail(t.line, t.col, "the JSON is nested deeper than %d", maxNesting)
				return t, false
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return l.closeJSON(t, start, i+1)
			}
		}
	}
	l.fail(t.line, t.col, "the JSON is not closed: its %c has no partner", l.src[start])
	return t, false
}

func (l *lexer) closeJSON(t token, start, end int) (token, bool) {
	literal := l.src[start:end]
	var compact bytes.Buffer
	valid := json.Compact(&compact, []byte(literal)) == nil
	if !valid {
		line, col := t.line, t.col
		var discard any
		err := json.Unmarshal([]byte(literal), &discard) // which tells where
		if syntax, ok := err.(*json.SyntaxError); ok && syntax.Offset > 0 {
			before := literal[:min(int(syntax.Offset)-1, len(literal))]
			line += strings.Count(before, "\n")
			if i := strings.LastIndexByte(before, '\n'); i >= 0 {
				col = len(before) - i
			} else {
				col += len(before)
			}
		}
		l.fail(line, col, "not valid JSON: %v", err)
	}
	l.at = end
	if n := strings.Count(literal, "\n"); n > 0 {
		l.line += n
		l.lineStart = start + strings.LastIndexByte(literal, '\n') + 1
	}
	t.text = compact.String()
	return t, valid
}

// quoteText writes a string as the language reads it: printable UTF-8 as it
// is, everything else escaped.
func quoteText(s string) string {
	b := []byte{'"'}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == utf8.RuneError && n == 1 || r < 0x20 || r == 0x7f:
			b = append(b, fmt.Sprintf(`\x%02x`, s[i])...)
		case !strconv.IsPrint(r):
			b = append(b, fmt.Sprintf(`\U%08x`, r)...)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(append(b, '"'))
}

// spaceJSON puts one blank after each colon and comma of compact JSON.
func spaceJSON(compact string) string {
	b := make([]byte, 0, len(compact)+len(compact)/4)
	inText := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		b = append(b, c)
		switch {
		case inText && c == '\\':
			i++
			b = append(b, compact[i])
		case c == '"':
			inText = !inText
		case !inText && (c == ':' || c == ','):
			b = append(b, ' ')
		}
	}
	return string(b)
}

// sortErrors puts faults into the order of the text.
func sortErrors(errs []error) {
	sort.SliceStable(errs, func(i, j int) bool {
		a, b := errs[i].(*SyntaxError), errs[j].(*SyntaxError)
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}
