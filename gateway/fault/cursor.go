package fault

import (
	"strconv"
	"strings"
	"time"
)

// cursor reads the words of one statement after its first.
type cursor struct {
	c      *compiler
	word   token
	rest   []token
	broken bool // a fault was reported, the rest is not judged
}

func (cur *cursor) take() (token, bool) {
	if len(cur.rest) == 0 {
		return token{}, false
	}
	t := cur.rest[0]
	cur.rest = cur.rest[1:]
	return t, true
}

// fail reports a fault at the next word, or at the statement where there is
// none.
func (cur *cursor) fail(format string, args ...any) {
	at := cur.word
	if len(cur.rest) > 0 {
		at = cur.rest[0]
	}
	cur.failAt(at, format, args...)
}

func (cur *cursor) failAt(at token, format string, args ...any) {
	if !cur.broken {
		cur.c.failAt(at, cur.word.text+": "+format, args...)
	}
	cur.broken = true
}

// end reports words that nothing has read.
func (cur *cursor) end() {
	if len(cur.rest) > 0 && !cur.broken {
		cur.failAt(cur.rest[0], "%s is too much here", cur.rest[0])
	}
}

// peek is the next bare word, or "".
func (cur *cursor) peek() string {
	if len(cur.rest) > 0 && cur.rest[0].kind == tokenWord {
		return cur.rest[0].text
	}
	return ""
}

// is takes the next word if it is that one.
func (cur *cursor) is(word string) bool {
	if cur.peek() == word {
		cur.rest = cur.rest[1:]
		return true
	}
	return false
}

// one takes one of the words given.
func (cur *cursor) one(allowed ...string) string {
	for _, w := range allowed {
		if cur.is(w) {
			return w
		}
	}
	cur.fail("allowed: %s", strings.Join(allowed, ", "))
	return allowed[0]
}

func (cur *cursor) number(what string, low, high int) int {
	n, err := strconv.Atoi(cur.peek())
	if err != nil || n < low || n > high {
		cur.fail("%s is needed, a whole number %d to %d", what, low, high)
		return low
	}
	cur.rest = cur.rest[1:]
	return n
}

const maxDuration = 24 * time.Hour

func (cur *cursor) duration(low time.Duration) time.Duration {
	d, err := time.ParseDuration(cur.peek())
	if err != nil || d < low || d > maxDuration {
		cur.fail("a duration is needed, %s to %s, as 250ms, 2s or 1m30s", low, maxDuration)
		return low
	}
	cur.rest = cur.rest[1:]
	return d
}

const maxSize = 256 << 20

// size reads a number of bytes, as 999, 64KiB or 32MiB.
func (cur *cursor) size(low int) int {
	text, unit := cur.peek(), 1
	if t, ok := strings.CutSuffix(text, "KiB"); ok {
		text, unit = t, 1<<10
	} else if t, ok := strings.CutSuffix(text, "MiB"); ok {
		text, unit = t, 1<<20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxSize/unit || n*unit < low {
		cur.fail("a size is needed, %d bytes to 256MiB, as 999, 64KiB or 32MiB", low)
		return low
	}
	cur.rest = cur.rest[1:]
	return n * unit
}

// name takes a bare word or a string that refers to nothing.
func (cur *cursor) name(what string) string {
	if len(cur.rest) == 0 || cur.rest[0].kind != tokenWord && cur.rest[0].kind != tokenText || cur.rest[0].text == "" {
		cur.fail("%s is needed", what)
		return ""
	}
	t, _ := cur.take()
	return t.text
}

// template takes a bare word or a string, with ${…} places.
func (cur *cursor) template(what string) template {
	if len(cur.rest) == 0 || cur.rest[0].kind != tokenWord && cur.rest[0].kind != tokenText {
		cur.fail("%s is needed", what)
		return template{}
	}
	t, _ := cur.take()
	return cur.places(t)
}

// places finds the ${…} of a token.
func (cur *cursor) places(t token) template {
	inJSON := t.kind == tokenJSON
	return parseTemplate(t.text, func(name string) (string, bool) { return cur.letText(name, inJSON) }, func(name string) {
		cur.failAt(t, "${%s} stands for nothing; allowed: %s, and the names of strings given by let ($${ for a plain ${)", name, strings.Join(varNames, ", "))
	})
}

// letText is the text of a let that is one string or word.
func (cur *cursor) letText(name string, inJSON bool) (string, bool) {
	value := cur.c.lets[name]
	if len(value) != 1 || value[0].kind != tokenText && value[0].kind != tokenWord {
		return "", false
	}
	text := value[0].text
	if strings.Contains(text, "${") {
		return "", false // places are filled once
	}
	if inJSON {
		text = quoted(text)
		text = text[1 : len(text)-1]
	}
	return text, true
}

// json takes a JSON literal.
func (cur *cursor) json() template {
	if len(cur.rest) == 0 || cur.rest[0].kind != tokenJSON {
		cur.fail("a JSON object or array is needed")
		return template{}
	}
	t, _ := cur.take()
	return cur.places(t)
}

// isContent reports whether a content follows.
func (cur *cursor) isContent() bool {
	if len(cur.rest) == 0 {
		return false
	}
	k := cur.rest[0].kind
	return k == tokenText || k == tokenJSON || cur.peek() == "words" || cur.peek() == "fill"
}

// content takes a string, JSON, "words …" or "fill …".
func (cur *cursor) content() content {
	switch {
	case !cur.isContent():
		cur.fail(`a text is needed: a "string", {JSON}, words N, words N..M, fill SIZE "x"`)
		return content{}
	case cur.is("words"):
		return cur.words()
	case cur.is("fill"):
		size := cur.size(1)
		unit := cur.name("the text to repeat")
		if len(unit) > size {
			cur.fail("the text to repeat is longer than the size")
			return content{}
		}
		return content{unit: unit, fill: size}
	}
	t, _ := cur.take()
	return content{text: cur.places(t), json: t.kind == tokenJSON}
}

func (cur *cursor) words() content {
	from, to, isRange := strings.Cut(cur.peek(), "..")
	if !isRange {
		from, to = "1", from
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil || a < 1 || b < a || b > maxWords {
		cur.fail("a number of words 1 to %d is needed, or a range as 41..60", maxWords)
		return content{}
	}
	cur.rest = cur.rest[1:]
	return content{from: a, to: b}
}
