package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
)

// Step is where in its loading a plugin was refused.
type Step string

const (
	StepModule    Step = "module"    // size, digest, what it is made of
	StepManifest  Step = "manifest"  // not there, broken, or not what the module says of itself
	StepImports   Step = "imports"   // it wants what it was not granted
	StepExports   Step = "exports"   // it lacks what the ABI demands
	StepConfig    Step = "config"    // the configuration does not fit the plugin
	StepCompile   Step = "compile"   // the engine refuses it
	StepStart     Step = "start"     // it does not come up
	StepConfigure Step = "configure" // it refuses its configuration
)

// LoadError says why a plugin was not loaded.
type LoadError struct {
	Plugin string
	Step   Step
	Err    error
}

func (e *LoadError) Error() string { return "plugin " + e.Plugin + ": " + e.Detail() }

// Detail is the error without the plugin's name, for where that is said already.
func (e *LoadError) Detail() string {
	if f, ok := e.Err.(*Failure); ok { //nolint:errorlint // one further down has text of its own around it
		return string(e.Step) + ": " + f.Detail()
	}
	return string(e.Step) + ": " + e.Err.Error()
}

func (e *LoadError) Unwrap() error { return e.Err }

// The names that the ABI has for exports.
const (
	exportMemory     = "memory"
	exportInitialize = "_initialize"
	exportABI        = "interlock_abi"
	exportAlloc      = "interlock_alloc"
	exportCall       = "interlock_call"
)

var exportTypes = map[string]meter.FuncType{
	exportInitialize: {},
	exportABI:        {Results: []meter.ValueType{meter.I32}},
	exportAlloc:      {Params: []meter.ValueType{meter.I32}, Results: []meter.ValueType{meter.I32}},
	exportCall:       {Params: []meter.ValueType{meter.I32, meter.I32}, Results: []meter.ValueType{meter.I64}},
}

// admitted is a module that may be compiled.
type admitted struct {
	manifest *Manifest
	code     []byte // rewritten
	limits   Limits
	granted  map[string]bool
	imports  map[string][]string // the host's functions that it wants, by module
	starts   bool                // it has _initialize
}

// admit checks all that can be checked before anything of a module is compiled.
func admit(o *Options) (*admitted, error) {
	refuse := func(s Step, err error) (*admitted, error) { return nil, &LoadError{o.Name, s, err} }
	limits := o.Limits.withDefaults()
	if int64(len(o.Module)) > limits.ModuleSize {
		return refuse(StepModule, fmt.Errorf("it has %d bytes, at most %d are allowed", len(o.Module), limits.ModuleSize))
	}
	if o.SHA256 != "" {
		sum := sha256.Sum256(o.Module)
		if have := hex.EncodeToString(sum[:]); !strings.EqualFold(have, o.SHA256) {
			return refuse(StepModule, about(fmt.Errorf("its sha256 is %s and not %s", have, o.SHA256), "sha256"))
		}
	}
	if len(o.Module) < 4 || string(o.Module[:4]) != "\x00asm" {
		return refuse(StepModule, errNotWasm)
	}
	manifest, err := o.manifest()
	if err != nil {
		return refuse(StepManifest, err)
	}
	a := &admitted{manifest: manifest, limits: limits.smaller(manifest.Limits), granted: map[string]bool{}}
	for i, g := range o.Grants {
		if !slices.Contains(capabilities, g) {
			return refuse(StepConfig, about(fmt.Errorf("%q is not a capability: there is %s", g, strings.Join(capabilities, ", ")), "grants", strconv.Itoa(i)))
		}
		a.granted[g] = true
	}
	for _, c := range manifest.Capabilities {
		if !a.granted[c] {
			return refuse(StepImports, about(fmt.Errorf("it wants the capability %s, which is not granted", c), "grants"))
		}
	}
	bounds := meter.DefaultLimits()
	bounds.MemoryPages = a.limits.pages()
	bounds.DataSize = uint32(min(limits.ModuleSize, 1<<31))
	bounds.CustomSection = bounds.DataSize
	m, err := meter.Rewrite(o.Module, bounds)
	if err != nil {
		if bounds.MemoryPages = mostPages; a.limits.pages() < mostPages {
			if _, e := meter.Rewrite(o.Module, bounds); e == nil { // with more memory it would do
				err = about(err, "limits", "memory")
			}
		}
		return refuse(StepModule, err)
	}
	a.code = m.Code
	if a.imports, err = a.checkImports(m.Imports); err != nil {
		return refuse(StepImports, err)
	}
	if a.starts, err = checkExports(m.Exports); err != nil {
		return refuse(StepExports, err)
	}
	if o.anyConfig {
		return a, nil
	}
	if err := manifest.checkConfig(o.config()); err != nil {
		return refuse(StepConfig, err)
	}
	return a, nil
}

// manifest returns what the module carries, or what lies beside it.
func (o *Options) manifest() (*Manifest, error) {
	m, err := ReadManifest(o.Module)
	if err != nil {
		return nil, err
	}
	if len(o.Manifest) == 0 {
		if m == nil {
			return nil, fmt.Errorf("there is none, neither in the section %s nor beside the module", manifestSection)
		}
		return m, nil
	}
	beside, err := ParseManifest(o.Manifest)
	if err != nil {
		return nil, err
	}
	if m != nil && !m.equal(beside) {
		return nil, errors.New("the one beside the module is not the one in it")
	}
	return beside, nil
}

func (o *Options) config() []byte {
	if c := bytes.TrimSpace(o.Config); len(c) > 0 && !bytes.Equal(c, []byte("null")) {
		return o.Config
	}
	return []byte("{}")
}

// checkImports returns the functions to provide, each once.
func (a *admitted) checkImports(list []meter.Import) (map[string][]string, error) {
	all := map[string][]string{}
	for _, i := range list {
		var want meter.FuncType
		switch {
		case i.Module == hostModule && i.Name == hostLog:
			if !a.granted[capabilityLog] {
				return nil, about(fmt.Errorf("%s.%s needs the capability log, which is not granted", i.Module, i.Name), "grants")
			}
			if !slices.Contains(a.manifest.Capabilities, capabilityLog) {
				return nil, fmt.Errorf("%s.%s is not among the capabilities of the manifest", i.Module, i.Name)
			}
			want.Params = meterTypes("iii")
		case i.Module == wasiModule && i.Name == exits:
			want.Params = meterTypes("i")
		case i.Module == wasiModule:
			f, known := wasi[i.Name]
			if !known {
				return nil, fmt.Errorf("%s.%s is not available", i.Module, i.Name)
			}
			want = meter.FuncType{Params: meterTypes(f.params), Results: meterTypes("i")}
		default:
			return nil, fmt.Errorf("%q.%q is not available", i.Module, i.Name)
		}
		if i.Type.String() != want.String() {
			return nil, fmt.Errorf("%s.%s has the type %s and not %s", i.Module, i.Name, want, i.Type)
		}
		if !slices.Contains(all[i.Module], i.Name) {
			all[i.Module] = append(all[i.Module], i.Name)
		}
	}
	return all, nil
}

func meterTypes(letters string) []meter.ValueType {
	t := make([]meter.ValueType, len(letters))
	for i, c := range letters {
		t[i] = meter.I32
		if c == 'I' {
			t[i] = meter.I64
		}
	}
	return t
}

// checkExports says whether the module has an _initialize.
func checkExports(list []meter.Export) (starts bool, err error) {
	found := map[string]meter.Export{}
	for _, e := range list {
		found[e.Name] = e
	}
	if e, ok := found[exportMemory]; !ok || e.Kind != meter.Memory {
		return false, errors.New("it does not export its memory")
	}
	if _, ok := found["_start"]; ok {
		return false, errors.New("it exports _start: build it as a reactor")
	}
	for _, name := range []string{exportABI, exportAlloc, exportCall, exportInitialize} {
		e, ok := found[name]
		if !ok {
			if name == exportInitialize {
				return false, nil
			}
			return false, fmt.Errorf("it does not export %s", name)
		}
		if want := exportTypes[name]; e.Kind != meter.Function || e.Type.String() != want.String() {
			return false, fmt.Errorf("%s is not a function of type %s", name, want)
		}
	}
	return true, nil
}
