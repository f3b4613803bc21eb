package fault

import "fmt"

// Script is a parsed fault script: what one provider does with the calls it
// gets. It is immutable and may drive any number of providers at once; each
// provider counts its own budgets. A nil *Script is a healthy provider.
type Script struct {
	name string
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
func Parse(name, text string) (*Script, []error) { panic("not yet") }

// MustParse is Parse for scripts written in Go source; it panics on a fault.
func MustParse(name, text string) *Script { panic("not yet") }

// Name is the name given to Parse.
func (s *Script) Name() string { return s.name }

// String is the script in canonical form: comments kept, two spaces of
// indentation, one space between words. Parsing it gives an equal script.
func (s *Script) String() string { panic("not yet") }
