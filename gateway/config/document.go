package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// document is one file while it is read: where everything stands in it, and what is wrong.
type document struct {
	file  string
	dir   string // of the file: relative paths start here
	env   Env
	files []string

	errors, warnings []Problem

	places map[string]place // by path of keys
	broken map[string]bool  // paths whose value could not be read: no check says more about them
	nodes  int
}

type place struct{ line, column int }

func newDocument(file, dir string, env Env) *document {
	return &document{file: file, dir: dir, env: env.withDefaults(), places: map[string]place{}, broken: map[string]bool{}}
}

func (d *document) has(key string) bool {
	_, ok := d.places[key]
	return ok
}

// place returns where a key stands, or else the nearest thing around it that the file gives.
func (d *document) place(key string) place {
	for {
		if p, ok := d.places[key]; ok {
			return p
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return place{1, 1}
		}
		key = key[:i]
	}
}

func (d *document) problem(key, message string) Problem {
	p := d.place(key)
	return Problem{File: d.file, Line: p.line, Column: p.column, Key: key, Message: message}
}

// fail and warn report what a check found about a key, unless the key's own value, or what
// it is part of, could not be read: then that has been said.
func (d *document) fail(key, format string, args ...any) {
	if !d.isBroken(key) {
		d.errors = append(d.errors, d.problem(key, fmt.Sprintf(format, args...)))
	}
}

func (d *document) warn(key, format string, args ...any) {
	if !d.isBroken(key) {
		d.warnings = append(d.warnings, d.problem(key, fmt.Sprintf(format, args...)))
	}
}

// reject reports a value that cannot be read, where it stands.
func (d *document) reject(n *node, key, format string, args ...any) {
	d.rejectAt(n.line, n.column, key, format, args...)
	d.broken[key] = true
}

func (d *document) rejectAt(line, column int, key, format string, args ...any) {
	d.errors = append(d.errors, Problem{
		File: d.file, Line: max(line, 1), Column: max(column, 1), Key: key, Message: fmt.Sprintf(format, args...),
	})
}

func (d *document) isBroken(key string) bool {
	for {
		if d.broken[key] {
			return true
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return false
		}
		key = key[:i]
	}
}

func (d *document) watch(path string) {
	if !slices.Contains(d.files, path) {
		d.files = append(d.files, path)
	}
}

// resolve makes a path of the file one that the process can open.
func (d *document) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.dir, path)
}

// Join appends a key to a path of keys, quoted where it would not be read as one key.
func Join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".[]\" ") {
		key = fmt.Sprintf("[%q]", key)
		return path + key
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// reason is an error of the file system without the path that the message names already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
