package config

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxSecretFile bounds what ${file:…} brings in.
const maxSecretFile = 1 << 20

// expand replaces the references in a text: ${env:NAME}, ${env:NAME:-fallback} and
// ${file:path}; $${ stands for ${ itself. referred says whether there was one; where ok is
// false a problem has been reported, which names the key and the variable and no value.
func (d *document) expand(n *node, key string) (out string, referred, ok bool) {
	rest := n.text
	if !strings.Contains(rest, "${") {
		return rest, false, true
	}
	var b strings.Builder
	ok = true
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			b.WriteString(rest)
			return b.String(), referred, ok
		}
		if i > 0 && rest[i-1] == '$' {
			b.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		b.WriteString(rest[:i])
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			d.reject(n, key, "a reference begins with ${ and does not end with }")
			return "", true, false
		}
		value, fine := d.reference(n, key, rest[i+2:i+end])
		b.WriteString(value)
		referred, ok = true, ok && fine
		rest = rest[i+end+1:]
	}
}

func (d *document) reference(n *node, key, ref string) (value string, ok bool) {
	kind, name, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		return d.variable(n, key, name)
	case "file":
		return d.content(n, key, name)
	}
	d.reject(n, key, "an unknown reference; allowed are ${env:NAME}, ${env:NAME:-fallback}, ${file:/path}, and $${ for ${ itself")
	return "", false
}

func (d *document) variable(n *node, key, ref string) (string, bool) {
	name, fallback, has := strings.Cut(ref, ":-")
	if !isVariable(name) {
		d.reject(n, key, "a reference to an environment variable is written ${env:NAME} or ${env:NAME:-fallback}, its name in letters, digits and _")
		return "", false
	}
	if v, set := d.env.Lookup(name); set && v != "" {
		return v, true
	}
	if !has {
		d.reject(n, key, "the environment variable %s is not set, or empty", name)
	}
	return fallback, has
}

func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func (d *document) content(n *node, key, path string) (string, bool) {
	if path == "" {
		d.reject(n, key, "a reference to a file is written ${file:/path}")
		return "", false
	}
	path = d.resolve(path)
	d.watch(path)
	b, err := d.env.ReadFile(path)
	switch {
	case err != nil:
		d.reject(n, key, "the file %s cannot be read: %s", path, reason(err))
		return "", false
	case len(b) > maxSecretFile:
		d.reject(n, key, "the file %s is larger than 1 MiB", path)
		return "", false
	case !utf8.Valid(b):
		d.reject(n, key, "the file %s is no UTF-8 text", path)
		return "", false
	}
	return string(bytes.TrimRight(b, "\r\n")), true
}
