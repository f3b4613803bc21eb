package fault

import (
	"slices"
	"strconv"
	"strings"
)

// vars are what a template may refer to: ${model}, ${call}, ${conn}, ${id},
// ${created}, ${name}.
type vars struct {
	model, id, name string
	call, conn      int
	created         int64
}

var varNames = []string{"call", "conn", "created", "id", "model", "name"}

func (v vars) value(name string) string {
	switch name {
	case "model":
		return v.model
	case "id":
		return v.id
	case "name":
		return v.name
	case "call":
		return strconv.Itoa(v.call)
	case "conn":
		return strconv.Itoa(v.conn)
	default:
		return strconv.FormatInt(v.created, 10)
	}
}

// template is a string with ${name} places. The zero value is "".
type template struct {
	pieces []templatePiece
}

type templatePiece struct {
	literal string
	name    string // where it is not "", the value of that variable
}

// parseTemplate splits a string at its ${name} places. expand gives the text
// of a let of that name, if there is one; bad is told an unknown name.
func parseTemplate(s string, expand func(string) (string, bool), bad func(name string)) template {
	var t template
	literal := func(s string) {
		if s != "" {
			t.pieces = append(t.pieces, templatePiece{literal: s})
		}
	}
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			literal(s)
			return t
		}
		if strings.HasSuffix(before, "$") { // $${ stands for ${
			literal(before[:len(before)-1] + "${")
			s = rest
			continue
		}
		literal(before)
		name, after, closed := strings.Cut(rest, "}")
		if value, ok := expand(name); closed && ok {
			literal(value)
		} else if closed && isVar(name) {
			t.pieces = append(t.pieces, templatePiece{name: name})
		} else {
			bad(name)
		}
		s = after
	}
}

func isVar(name string) bool { return slices.Contains(varNames, name) }

// plain is the template's text where it refers to nothing.
func (t template) plain() (string, bool) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name != "" {
			return "", false
		}
		b.WriteString(p.literal)
	}
	return b.String(), true
}

// render fills the places in.
func (t template) render(v vars) string { return t.fill(v, func(s string) string { return s }) }

// renderJSON fills the places in as they must stand inside a JSON string.
func (t template) renderJSON(v vars) string {
	return t.fill(v, func(s string) string {
		quoted := appendQuoted(nil, s)
		return string(quoted[1 : len(quoted)-1])
	})
}

func (t template) fill(v vars, escape func(string) string) string {
	if len(t.pieces) == 1 && t.pieces[0].name == "" {
		return t.pieces[0].literal
	}
	var b strings.Builder
	for _, p := range t.pieces {
		if p.name == "" {
			b.WriteString(p.literal)
		} else {
			b.WriteString(escape(v.value(p.name)))
		}
	}
	return b.String()
}

// content is what an answer says: a string, a run of number words, a filling
// or a JSON value taken as text.
type content struct {
	text     template
	json     bool // the template is JSON
	from, to int  // words from..to, where to > 0
	unit     string
	fill     int // bytes of repeated unit, where unit is not ""
}

func (c content) render(v vars) string {
	switch {
	case c.to > 0:
		return strings.Join(numberWords(c.from, c.to), "")
	case c.unit != "":
		return strings.Repeat(c.unit, c.fill/len(c.unit)+1)[:c.fill]
	case c.json:
		return c.text.renderJSON(v)
	default:
		return c.text.render(v)
	}
}

// tokens are the text cut where a model would stream it: before each blank.
func (c content) tokens(v vars) []string {
	if c.to > 0 {
		return numberWords(c.from, c.to)
	}
	return splitWords(c.render(v))
}

// splitWords cuts a text before each run of blanks, so that the parts joined
// are the text.
func splitWords(s string) []string {
	var out []string
	start, inWord := 0, false
	for i := 0; i < len(s); i++ {
		blank := s[i] == ' ' || s[i] == '\n' || s[i] == '\t'
		if blank && inWord {
			out = append(out, s[start:i])
			start = i
		}
		inWord = !blank
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

const maxWords = 100_000

var (
	units = strings.Fields(`zero one two three four five six seven eight nine ten eleven twelve
		thirteen fourteen fifteen sixteen seventeen eighteen nineteen`)
	tens = strings.Fields("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
)

// numberWords are the English numbers from..to, each but "one" with the blank
// before it, so that words 1..40 and words 41..60 joined are words 60.
func numberWords(from, to int) []string {
	out := make([]string, 0, to-from+1)
	for n := from; n <= to; n++ {
		if n == 1 {
			out = append(out, numberWord(n))
		} else {
			out = append(out, " "+numberWord(n))
		}
	}
	return out
}

func numberWord(n int) string {
	switch {
	case n >= 1000:
		return compound(numberWord(n/1000)+"-thousand", n%1000)
	case n >= 100:
		return compound(units[n/100]+"-hundred", n%100)
	case n >= 20:
		return compound(tens[n/10], n%10)
	default:
		return units[n]
	}
}

func compound(head string, rest int) string {
	if rest == 0 {
		return head
	}
	return head + "-" + numberWord(rest)
}

// appendQuoted appends s as a JSON string: what JSON demands escaped and
// nothing else, bytes that are not UTF-8 as they are.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
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
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

// splitmix64 is a well-mixed function of its argument: the source of all
// pseudo-random choices here (Steele, Lea, Flood 2014).
func splitmix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
