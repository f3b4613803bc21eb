package wasm

import (
	"context"
	"fmt"
	"path/filepath"
)

// unknown is the manifest with which a module is tried that has none yet. It grants itself what
// there is: a log, which leads nowhere.
const unknown = `{"name":"unknown","version":"0.0.0","abi":"1.0","kind":"guard","operations":["guard_request"],"capabilities":["log"]}`

// Describe compiles and starts a module that has no manifest yet and returns what it says of
// itself, JSON. It is asked before it is configured. A manifest that the module carries is passed
// over. The error is a *LoadError; the text may still be no manifest.
func Describe(ctx context.Context, o Options) ([]byte, error) {
	bare, err := withoutManifest(o.Module)
	if err != nil {
		return nil, &LoadError{o.Name, StepModule, err}
	}
	o.Module, o.Manifest, o.SHA256, o.Config = bare, []byte(unknown), "", nil
	o.Grants = capabilities
	return said(ctx, &o)
}

// Prepare does what Load does, up to the configuration: it admits, compiles and starts the module
// and has it say what it is. With it the cache is filled where there is no configuration yet.
func Prepare(ctx context.Context, o Options) (*Manifest, error) {
	text, err := said(ctx, &o)
	if err != nil {
		return nil, err
	}
	want, err := o.manifest()
	if err != nil {
		return nil, &LoadError{o.Name, StepManifest, err}
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, &LoadError{o.Name, StepManifest, fmt.Errorf("describe: %w", err)}
	}
	if !m.equal(want) {
		return nil, &LoadError{o.Name, StepManifest, errOtherManifest}
	}
	return m, nil
}

func said(ctx context.Context, o *Options) ([]byte, error) {
	o.anyConfig = true
	p, err := compile(ctx, o)
	if err != nil {
		return nil, err
	}
	defer p.free()
	i, err := p.begin()
	if err != nil {
		return nil, &LoadError{o.Name, StepStart, err}
	}
	defer p.discard(i)
	text, err := p.said(i)
	if err != nil {
		return nil, &LoadError{o.Name, StepManifest, err}
	}
	return text, nil
}

// Has says whether the folder holds a module's code, whole.
func (c *Cache) Has(module []byte) bool {
	return c.dir != "" && sound(filepath.Join(c.dir, cacheKey(module)))
}
