package fault

import (
	"sort"
	"strings"
)

// compiler turns a script's statements into settings and rules.
type compiler struct {
	lex    *lexer
	script *Script
	lets   map[string][]token
	rule   *rule // being compiled, nil at the top
	// streamOnly is the first word of the rule that makes sense in a stream
	// only, and ended is true behind its "end".
	streamOnly *token
	ended      bool
	repeats    int // product of the open repeats
}

func (c *compiler) failAt(t token, format string, args ...any) {
	c.lex.fail(t.line, t.col, format, args...)
}

func (c *compiler) compile() {
	c.script.settings = defaultSettings()
	for _, s := range c.script.tree.top {
		cur := c.cursor(s)
		switch word := s.word(); {
		case word == "on":
			c.compileRule(cur, s)
		case word == "let":
			c.let(cur)
		case s.broken:
		case settingWords[word] != nil:
			settingWords[word](cur, &c.script.settings)
			cur.end()
		default:
			hint := ""
			if ruleWords[word] != nil || stepWords[word] != nil {
				hint = "; " + word + " belongs into a rule: indent it under its \"on\""
			}
			c.failAt(s.args[0], "unknown word %s; allowed at the first column: %s%s", word, words(settingWords, "let", "on"), hint)
		}
	}
}

// words lists the words of a table for a message.
func words[T any](table map[string]T, more ...string) string {
	list := more
	for w := range table {
		list = append(list, w)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// let gives a value a name. Its own references are resolved here, so that no
// name can refer to itself.
func (c *compiler) let(cur *cursor) {
	name, ok := cur.take()
	if cur.broken {
		c.lets[name.text] = []token{} // known, so that its uses are no faults
		return
	}
	if !ok {
		cur.fail(`a name is needed, as in let greeting = "hello"`)
		return
	}
	equals, ok := cur.take()
	switch {
	case name.kind != tokenWord || strings.IndexFunc(name.text, func(r rune) bool { return r > 0x7f || !isNameByte(byte(r)) }) >= 0:
		c.failAt(name, "%s is no name: letters, digits, - and _", name)
	case isVar(name.text):
		c.failAt(name, "%s is taken: ${%s} stands for something already", name, name.text)
	case c.lets[name.text] != nil:
		c.failAt(name, "%s has a value already", name)
	case !ok:
		cur.fail("= and a value must follow the name, as in let greeting = \"hello\"")
	case equals.text != "=":
		c.failAt(equals, "= must follow the name, as in let greeting = \"hello\"")
	case len(cur.rest) == 0:
		cur.fail(`a value is needed: a "string", {JSON}, a number, a duration, words N, fill SIZE "x"`)
	default:
		if c.lets[name.text] = cur.rest; len(cur.rest) > maxLetTokens {
			cur.fail("a value has at most %d words", maxLetTokens)
		}
	}
}

const maxLetTokens = 16

// cursor reads a statement's words with its references resolved.
func (c *compiler) cursor(s *statement) *cursor {
	cur := &cursor{c: c, word: s.args[0], broken: s.broken}
	for _, t := range s.args[1:] {
		if t.kind != tokenRef {
			cur.rest = append(cur.rest, t)
			continue
		}
		value, ok := c.lets[t.text]
		if !ok {
			c.failAt(t, "$%s has no value; allowed: %s", t.text, orNone(words(c.lets)))
			cur.broken = true
			continue
		}
		cur.broken = cur.broken || len(value) == 0
		for _, v := range value {
			v.line, v.col = t.line, t.col
			cur.rest = append(cur.rest, v)
		}
	}
	return cur
}

func orNone(list string) string {
	if list == "" {
		return "none, there is no let above"
	}
	return list
}

func (c *compiler) compileRule(cur *cursor, s *statement) {
	r := rule{line: s.line, answer: newPlan()}
	c.rule, c.streamOnly, c.ended, c.repeats = &r, nil, false, 1
	c.head(cur, &r)
	for _, line := range s.block {
		if line.broken {
			continue
		}
		inner := c.cursor(line)
		if set := ruleWords[line.word()]; set != nil {
			c.allowedHere(line.args[0])
			set(inner, &r)
			inner.end()
			continue
		}
		if step := c.step(line, inner); step != nil {
			r.steps = append(r.steps, step)
		}
	}
	c.check(cur.word, &r)
	c.rule = nil
	c.script.rules = append(c.script.rules, r)
}

// connectionWords are what a rule "on connection" may hold.
var connectionWords = map[string]bool{
	"once": true, "times": true, "for": true, "until": true, "after": true, "every": true, "chance": true,
	"delay": true, "stall": true, "cut": true, "wire": true, "garbage": true, "repeat": true,
}

func (c *compiler) allowedHere(word token) bool {
	if c.rule.connection && !connectionWords[word.text] {
		c.failAt(word, "%s is not for a connection; allowed: %s", word, words(connectionWords))
		return false
	}
	return true
}

// step compiles one line that does something; nil where it is only a trigger
// or has a fault.
func (c *compiler) step(line *statement, cur *cursor) step {
	word := line.args[0]
	if word.text == "repeat" {
		return c.repeat(line, cur)
	}
	read := stepWords[word.text]
	if read == nil {
		c.failAt(word, "unknown word %s; allowed in a rule: %s", word, words(stepWords, append(keys(ruleWords), "repeat")...))
		return nil
	}
	if !c.allowedHere(word) {
		return nil
	}
	if c.ended && !afterEnd[word.text] {
		c.failAt(word, "%s comes after end: the answer is complete; allowed: %s", word, words(afterEnd))
	}
	s := read(cur, c.rule)
	cur.end()
	return s
}

// afterEnd are the steps that make sense on the idle connection.
var afterEnd = map[string]bool{"delay": true, "stall": true, "cut": true, "wire": true, "garbage": true}

func keys[T any](table map[string]T) []string {
	var out []string
	for k := range table {
		out = append(out, k)
	}
	return out
}

const maxRepeats = 1_000_000

func (c *compiler) repeat(line *statement, cur *cursor) step {
	s := repeatStep{times: cur.number("how often", 1, maxRepeats)}
	cur.end()
	outer := c.repeats
	if c.repeats *= max(s.times, 1); c.repeats > maxRepeats {
		c.failAt(line.args[0], "nested repeats come to more than %d", maxRepeats)
		c.repeats = maxRepeats
	}
	for _, inner := range line.block {
		if inner.broken {
			continue
		}
		word := inner.args[0]
		if ruleWords[word.text] != nil {
			c.failAt(word, "%s holds for the whole rule and stands outside of repeat", word)
			continue
		}
		if step := c.step(inner, c.cursor(inner)); step != nil {
			s.steps = append(s.steps, step)
		}
	}
	c.repeats = outer
	return s
}

// check looks at a rule as a whole.
func (c *compiler) check(word token, r *rule) {
	a := r.answer
	switch {
	case a.body != nil && a.speaks:
		c.failAt(word, "this rule has two answers: events and a whole body; allowed: one of them")
	case a.readHead && r.match.needsBody():
		c.failAt(word, "this rule answers before it reads the body and yet asks for what is in it (stream, json, model, body, asks)")
	case c.streamOnly != nil && !r.streams():
		c.failAt(*c.streamOnly, `%s makes sense in a stream only: say "on … stream", or "as stream"`, c.streamOnly)
	case a.as == modeStream && (a.body != nil || !speakable(r.match.endpoints)):
		c.failAt(word, "as stream needs events, and chat, responses or completions in the rule's head")
	}
}

func (r *rule) streams() bool {
	return r.answer.as == modeStream || r.match.mode == modeStream && r.answer.as == modeAny
}

func speakable(endpoints []endpoint) bool {
	for _, e := range endpoints {
		if !e.speaks() {
			return false
		}
	}
	return len(endpoints) > 0
}
