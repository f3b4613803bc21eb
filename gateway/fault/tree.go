package fault

import (
	"fmt"
	"strings"
)

// statement is one line of a script as written: what the formatter prints and
// the compiler reads.
type statement struct {
	line, col int
	lead      []string // comments above it; "" is an empty line
	args      []token  // the first is the statement's word
	trail     string   // the comment at the end of its line
	block     []*statement
	open      bool // a block in braces, as repeat has
	broken    bool // its line has a fault, and is not judged further
	tail      []string
	closing   string // the comment after the closing brace
}

func (s *statement) word() string { return s.args[0].text }

// tree is a script's statements: settings and rules, with each rule's lines as
// its block.
type tree struct {
	top  []*statement
	tail []string // comments at the end
}

const maxBlockDepth = 8

// builder puts lines into a tree. Lines that start at the first column stand
// at the top; indented ones belong to the rule above them.
type builder struct {
	lex   *lexer
	tree  tree
	lead  []string
	rule  *statement
	opens []*statement // open blocks, innermost last
}

func (b *builder) build(lines []logicalLine) {
	for _, ll := range lines {
		if len(ll.tokens) == 0 {
			b.remark(ll.comment)
			continue
		}
		b.line(ll)
	}
	for _, s := range b.opens {
		b.lex.fail(s.line, s.col, "%s { has no closing }", s.word())
	}
	b.tree.tail = trimBlank(b.lead)
}

// remark keeps comments, and one empty line where there are several.
func (b *builder) remark(comment string) {
	if comment == "" && len(b.lead) > 0 && b.lead[len(b.lead)-1] == "" {
		return
	}
	b.lead = append(b.lead, comment)
}

func (b *builder) takeLead(first bool) []string {
	lead := b.lead
	b.lead = nil
	if first && len(lead) > 0 && lead[0] == "" {
		lead = lead[1:]
	}
	if len(lead) == 0 {
		return nil
	}
	return lead
}

func trimBlank(lead []string) []string {
	if n := len(lead); n > 0 && lead[n-1] == "" {
		lead = lead[:n-1]
	}
	if len(lead) == 0 {
		return nil
	}
	return lead
}

func (b *builder) line(ll logicalLine) {
	first := ll.tokens[0]
	if first.kind == tokenClose {
		b.close(ll)
		return
	}
	if first.kind != tokenWord {
		b.lex.fail(first.line, first.col, "a line starts with a word, not with %s", first)
		return
	}
	s := &statement{line: first.line, col: first.col, args: ll.tokens, trail: ll.comment, broken: ll.broken}
	if last := len(s.args) - 1; s.args[last].kind == tokenOpen {
		s.args, s.open = s.args[:last], true
	}
	for _, t := range s.args {
		if t.kind == tokenOpen || t.kind == tokenClose {
			b.lex.fail(t.line, t.col, "%s stands at the end of a line for an opening, alone for a closing", t)
			return
		}
	}
	if blockWords[first.text] && !s.open && !s.broken {
		b.lex.fail(first.line, first.col, "%s needs { at the end of its line", first.text)
		return
	}
	b.place(s, ll.indented)
}

func (b *builder) place(s *statement, indented bool) {
	if !indented {
		for _, open := range b.opens {
			b.lex.fail(open.line, open.col, "%s { has no closing }", open.word())
		}
		b.opens = nil
		s.lead = b.takeLead(len(b.tree.top) == 0)
		b.tree.top = append(b.tree.top, s)
		b.rule = s
		if s.open {
			b.lex.fail(s.line, s.col, "%s belongs into a rule: indent it under its \"on\"", s.word())
		}
		return
	}
	if b.rule == nil || b.rule.word() != "on" {
		b.lex.fail(s.line, s.col, "an indented line belongs to a rule, and there is no \"on\" above it; settings start at the first column")
		return
	}
	into := b.rule
	if n := len(b.opens); n > 0 {
		into = b.opens[n-1]
	}
	s.lead = b.takeLead(false)
	into.block = append(into.block, s)
	if s.open {
		if len(b.opens) == maxBlockDepth {
			b.lex.fail(s.line, s.col, "blocks are nested deeper than %d", maxBlockDepth)
		}
		b.opens = append(b.opens, s)
	}
}

func (b *builder) close(ll logicalLine) {
	t := ll.tokens[0]
	n := len(b.opens)
	switch {
	case n == 0:
		b.lex.fail(t.line, t.col, "} closes nothing")
	case len(ll.tokens) > 1:
		b.lex.fail(ll.tokens[1].line, ll.tokens[1].col, "} stands alone on its line")
	default:
		b.opens[n-1].tail = trimBlank(b.takeLead(false))
		b.opens[n-1].closing = ll.comment
		b.opens = b.opens[:n-1]
	}
}

// String is the canonical form.
func (t tree) String() string {
	var b strings.Builder
	for _, s := range t.top {
		s.format(&b, "")
	}
	for _, c := range t.tail {
		fmt.Fprintln(&b, c)
	}
	return b.String()
}

func (s *statement) format(b *strings.Builder, indent string) {
	formatRemarks(b, indent, s.lead)
	b.WriteString(indent)
	for i, a := range s.args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.String())
	}
	if s.open {
		b.WriteString(" {")
	}
	formatTrail(b, s.trail)
	for _, inner := range s.block {
		inner.format(b, indent+"  ")
	}
	if s.open {
		formatRemarks(b, indent+"  ", s.tail)
		b.WriteString(indent + "}")
		formatTrail(b, s.closing)
	}
}

func formatRemarks(b *strings.Builder, indent string, remarks []string) {
	for _, c := range remarks {
		if c != "" {
			b.WriteString(indent + c)
		}
		b.WriteByte('\n')
	}
}

func formatTrail(b *strings.Builder, comment string) {
	if comment != "" {
		b.WriteString("  " + comment)
	}
	b.WriteByte('\n')
}
