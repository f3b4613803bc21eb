package config

import (
	"errors"
	"strings"
)

// Glob is a pattern over public names: * is any run of characters, slashes included, ? is one
// character, \ takes the next character as it is. Brackets and braces, which mean sets and
// choices elsewhere and would match nothing here, need the \.
type Glob struct{ pattern string }

var errGlob = errors.New(`a glob is expected: * is any run of characters, ? is one, a backslash takes the next one as it is, which [ ] { } need; 1 to 256 characters`)

// NewGlob reads a pattern.
func NewGlob(pattern string) (Glob, error) {
	if pattern == "" || len(pattern) > 256 {
		return Glob{}, errGlob
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c < ' ' || c == 0x7f || strings.IndexByte("[]{}", c) >= 0:
			return Glob{}, errGlob
		case c == '\\':
			if i++; i == len(pattern) {
				return Glob{}, errGlob
			}
		}
	}
	return Glob{pattern}, nil
}

// String returns the pattern.
func (g Glob) String() string { return g.pattern }

// Match says whether the whole name matches. It does not allocate, and takes at most the
// product of both lengths.
func (g Glob) Match(name string) bool {
	p, i, j := g.pattern, 0, 0
	star, mark := -1, 0 // where the last * stands, and how far it has eaten
	for j < len(name) {
		if i < len(p) && p[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if n := g.one(i, name[j]); n > 0 {
			i, j = i+n, j+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// one returns the length of the pattern's element at i where it matches c, else 0.
func (g Glob) one(i int, c byte) int {
	switch p := g.pattern; {
	case i >= len(p):
		return 0
	case p[i] == '?':
		return 1
	case p[i] == '\\' && p[i+1] == c:
		return 2
	case p[i] != '\\' && p[i] == c:
		return 1
	default:
		return 0
	}
}

func (g *Glob) parse(text string) (err error) {
	*g, err = NewGlob(text)
	return err
}
