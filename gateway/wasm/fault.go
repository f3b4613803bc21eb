package wasm

import (
	"errors"
	"strings"
)

// Fault is one thing for which a plugin is refused, placed in its entry of a configuration.
type Fault struct {
	// Path leads to the key that it is about, from the entry: [grants 0], [config word],
	// [limits memory], [sha256]. It is [source] where the module itself is at fault. A step is a
	// key or, in a list, an index.
	Path    []string
	Message string
}

// keyed is an error about one key of a plugin's entry.
type keyed struct {
	path []string
	err  error
}

func about(err error, path ...string) error { return &keyed{path, err} }

func (e *keyed) Error() string { return e.err.Error() }
func (e *keyed) Unwrap() error { return e.err }

// unfit is a configuration that does not fit the plugin's schema: each place that does not.
type unfit []Fault

func (e unfit) Error() string {
	list := make([]string, len(e))
	for i, f := range e {
		list[i] = strings.Join(f.Path, ".") + ": " + f.Message
	}
	return strings.Join(list, "; ")
}

// Faults lists all that the plugin is refused for: at least one.
func (e *LoadError) Faults() []Fault {
	var list unfit
	if errors.As(e.Err, &list) {
		return list
	}
	var one *keyed
	switch {
	case errors.As(e.Err, &one):
		return []Fault{{one.path, e.Detail()}}
	case e.Step == StepConfig || e.Step == StepConfigure:
		return []Fault{{[]string{"config"}, e.Detail()}}
	}
	return []Fault{{[]string{"source"}, e.Detail()}}
}
