package fault

import "fmt"

// Script is a parsed fault script: what one provider does with the calls it
// gets. It is immutable and may drive any number of providers at once; each
// provider counts its own budgets. A nil *Script is a healthy provider.
type Script struct {
	name     string
	tree     tree
	settings settings
	rules    []rule
}

// SyntaxError is one fault of a script's text. Error renders it as
// "name:line:column: message", and the message says what is allowed there.
type SyntaxError struct {
	Name    string // the script's name as given to Parse
	Line    int    // from 1
	Column  int    // from 1, in bytes
	Message string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Message)
}

// Parse reads a script. It reports every fault of the text, not the first,
// each as a *SyntaxError in the order of the text; the script is nil when
// there is any. The name is only for messages.
func Parse(name, text string) (*Script, []error) {
	lex := &lexer{name: name, src: text}
	b := &builder{lex: lex}
	b.build(lex.lines())
	s := &Script{name: name, tree: b.tree}
	c := &compiler{lex: lex, script: s, lets: map[string][]token{}}
	c.compile()
	if len(lex.errs) > 0 {
		sortErrors(lex.errs)
		return nil, lex.errs
	}
	return s, nil
}

// MustParse is Parse for scripts written in Go source; it panics on a fault.
func MustParse(name, text string) *Script {
	s, errs := Parse(name, text)
	if len(errs) > 0 {
		panic(errs[0])
	}
	return s
}

// Name is the name given to Parse.
func (s *Script) Name() string { return s.name }

// String is the script in canonical form: comments kept, two spaces of
// indentation, one space between words. Parsing it gives an equal script.
func (s *Script) String() string { return s.tree.String() }
