package tool

import (
	"strings"
	"unicode"
)

// Names, reasons and rules are what a bundle's author, a caller or a provider wrote. Nothing of
// it is a command to a terminal, or markup where the rest of a page is.

// printed replaces what a terminal could take for a command.
func printed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// markup is what Markdown, and the HTML in it, could take for something else than text, in the
// cell of a table too. An underscore within a word is none, and names are full of them.
var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "|", `\|`, "*", `\*`, "[", `\[`, "]", `\]`, "~", `\~`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;",
)

// markdown returns what shows as that text in Markdown.
func markdown(s string) string { return markup.Replace(printed(s)) }

// code returns the text as Markdown's code.
func code(s string) string {
	s = printed(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if fence == "`" {
		return fence + s + fence
	}
	return fence + " " + s + " " + fence
}
