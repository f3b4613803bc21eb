package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// own reads a scalar type of our own.
func (d *document) own(s scalar, n *node, key string) {
	if n.kind == integer && n.text == "0" {
		n = &node{kind: text, text: "0", line: n.line, column: n.column} // no unit needed
	}
	if n.kind != text {
		if err := s.parse(n.text); n.kind < text && err != nil {
			d.reject(n, key, "%s", err)
		} else {
			d.wrongKind(n, key, "a text")
		}
		return
	}
	if value, _, ok := d.expand(n, key); ok {
		if err := s.parse(value); err != nil {
			d.reject(n, key, "%s", err)
		}
	}
}

func (d *document) text(v reflect.Value, n *node, key string, t tags) {
	if n.kind != text {
		if n.kind == mapping || n.kind == sequence {
			d.wrongKind(n, key, "a text")
		} else {
			d.reject(n, key, "a text is expected, not %s: put it in quotes", n.kind)
		}
		return
	}
	value, referred, ok := d.expand(n, key)
	if !ok {
		return
	}
	secret := v.Type() == secretType
	if message := t.refuse(value); message != "" {
		if len(t.enum) > 0 && !secret && !referred {
			message += nearest(value, t.enum)
		}
		d.reject(n, key, "%s", message)
		return
	}
	harmless := t.literal || t.is == "proxy" && !strings.Contains(value, "@")
	if secret && !referred && value != "" && !harmless {
		d.warn(key, "a secret written out; ${env:NAME} or ${file:/path} keeps it out of the file")
	}
	if t.is == "path" {
		value = d.resolve(value)
	}
	v.SetString(value)
}

// plain is a number's or boolean's text, which may come from a reference.
func (d *document) plain(n *node, key string) (*node, bool) {
	if n.kind != text || !strings.HasPrefix(n.text, "${") {
		return n, true
	}
	value, _, ok := d.expand(n, key)
	if !ok {
		return nil, false
	}
	out := &node{kind: text, text: value, line: n.line, column: n.column}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		out.kind = integer
	} else if _, err := strconv.ParseFloat(value, 64); err == nil {
		out.kind = float
	} else if value == "true" || value == "false" {
		out.kind = boolean
	}
	return out, true
}

func (d *document) boolean(v reflect.Value, n *node, key string) {
	n, ok := d.plain(n, key)
	switch {
	case !ok:
	case n.kind != boolean:
		d.wrongKind(n, key, "true or false")
	default:
		v.SetBool(n.text == "true")
	}
}

func (d *document) integer(v reflect.Value, n *node, key string, t tags) {
	n, ok := d.plain(n, key)
	if !ok {
		return
	}
	// 1e3 and 10.0 are whole numbers too, in JSON Schema's eyes as well.
	f, err := strconv.ParseFloat(n.text, 64)
	if n.kind != integer && (n.kind != float || err != nil || f != float64(int64(f))) {
		d.wrongKind(n, key, "a whole number")
		return
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind == float {
		i, err = int64(f), nil
	}
	if message := t.outside(float64(i)); err != nil || message != "" || i > maxInteger || i < -maxInteger {
		d.reject(n, key, "%s", orElse(message, "a number too large"))
		return
	}
	v.SetInt(i)
}

// maxInteger is the largest whole number that a float holds exactly, as JSON readers need.
const maxInteger = 1 << 53

func (d *document) float(v reflect.Value, n *node, key string, t tags) {
	n, ok := d.plain(n, key)
	if !ok {
		return
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if n.kind != integer && n.kind != float || err != nil {
		d.wrongKind(n, key, "a number")
		return
	}
	if message := t.outside(f); message != "" {
		d.reject(n, key, "%s", message)
		return
	}
	v.SetFloat(f)
}

func (d *document) duration(v reflect.Value, n *node, key string, t tags) {
	var x durationText
	before := len(d.errors)
	d.own(&x, n, key)
	if len(d.errors) != before {
		return
	}
	if message := t.outsideDuration(time.Duration(x)); message != "" {
		d.reject(n, key, "%s", message)
		return
	}
	v.SetInt(int64(x))
}

type durationText time.Duration

func (x *durationText) parse(s string) error {
	v, err := parseDuration(s)
	*x = durationText(v)
	return err
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
