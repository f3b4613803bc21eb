package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultFile is the configuration file where none is named.
const DefaultFile = "interlock.yaml"

// Env is what a file may refer to. The zero value is the process's own environment and files.
type Env struct {
	// Lookup returns an environment variable; nil is os.LookupEnv.
	Lookup func(name string) (string, bool)
	// ReadFile reads a file named by ${file:…} or by a key; nil is os.ReadFile.
	ReadFile func(path string) ([]byte, error)
}

func (e Env) withDefaults() Env {
	if e.Lookup == nil {
		e.Lookup = os.LookupEnv
	}
	if e.ReadFile == nil {
		e.ReadFile = os.ReadFile
	}
	return e
}

// Result is what became of a file.
type Result struct {
	// Config is nil where there are errors.
	Config *Config
	// Found is what could be read, for further checks only: where there are errors, some of it
	// is defaults. Nil where the file cannot be read at all.
	Found *Config
	// Errors and Warnings are sorted by their place in the file.
	Errors, Warnings []Problem
	// Files are the files and directories that the configuration was read from or refers to, to
	// be watched: the file itself, secrets, certificates, policy bundles.
	Files []string

	doc *document
}

// Load reads a configuration file. A file that cannot be read is an error in the result like
// any other.
func Load(path string, env Env) *Result {
	b, err := os.ReadFile(path)
	if err != nil {
		p := Problem{File: path, Line: 1, Column: 1, Message: "cannot be read: " + reason(err)}
		return &Result{Errors: []Problem{p}, Files: []string{path}, doc: newDocument(path, "", env)}
	}
	return Parse(b, path, env)
}

// Parse reads a configuration. name is the file's, for messages and as the place that relative
// paths start from. All faults are found at once: one does not hide another.
func Parse(b []byte, name string, env Env) *Result {
	d := newDocument(name, filepath.Dir(name), env)
	d.watch(name)
	c := new(Config)
	fill(c)
	root, ok := d.read(b)
	if ok {
		d.decode(c, root)
		d.check(c)
	}
	r := &Result{Config: c, Found: c, Files: d.files, doc: d, Errors: sorted(d.errors), Warnings: sorted(d.warnings)}
	if len(r.Errors) > 0 {
		r.Config = nil
	}
	if !ok {
		r.Found = nil
	}
	return r
}

// Has says whether the file itself gives a key, as opposed to a default.
func (r *Result) Has(key string) bool { return r.doc.has(key) }

// Fail adds an error found elsewhere, such as by the catalogue or when a policy is compiled.
// Config stays, for further checks; Err reports it.
func (r *Result) Fail(key, message string) {
	r.Errors = sorted(append(r.Errors, r.doc.problem(key, message)))
}

// Faulty says whether an error stands at a key or inside it: then what was found of it is not
// what the file means.
func (r *Result) Faulty(key string) bool {
	return r.doc.isBroken(key) || slices.ContainsFunc(r.Errors, func(p Problem) bool {
		rest, inside := strings.CutPrefix(p.Key, key)
		return inside && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Warn adds a warning found elsewhere.
func (r *Result) Warn(key, message string) {
	r.Warnings = sorted(append(r.Warnings, r.doc.problem(key, message)))
}

// Strict turns the warnings into errors, but for those about what is wanting: the defaults hold.
func (r *Result) Strict() {
	var lenient []Problem
	for _, w := range r.Warnings {
		if w.lenient {
			lenient = append(lenient, w)
		} else {
			r.Errors = append(r.Errors, w)
		}
	}
	r.Errors, r.Warnings = sorted(r.Errors), lenient
}

// Err returns nil, or an *Invalid with every error.
func (r *Result) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	return &Invalid{Problems: r.Errors}
}
