package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
)

// Inspection is what can be said of a module without running anything of it.
type Inspection struct {
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Manifest *Manifest `json:"manifest"` // nil where there is none, or it is faulty
	Sections []Section `json:"sections"` // as far as they can be read
	Imports  []Symbol  `json:"imports"`  // nil where the module is refused for what it is made of
	Exports  []Symbol  `json:"exports"`
	Memory   int64     `json:"memory"` // bytes, at the start
	Limits   Limits    `json:"-"`      // those that would hold
	Refused  error     `json:"-"`      // a *LoadError: why it would not be admitted, with all that it wants granted
}

// Section is a part of a module.
type Section struct {
	Name string `json:"name"` // of a custom one in quotes
	Size int    `json:"size"` // bytes, with its head
}

// Symbol is what a module imports or exports.
type Symbol struct {
	Module string `json:"module,omitempty"` // of an import
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Type   string `json:"type,omitempty"` // of a function
}

var (
	sectionNames = [...]string{
		"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count",
	}
	kindNames = [...]string{meter.Function: "function", meter.Table: "table", meter.Memory: "memory", meter.Global: "global"}
)

// Inspect looks at a module, however hostile, within o.Limits. Whatever it wants counts as
// granted, and its configuration is not looked at.
func Inspect(o Options) *Inspection {
	sum := sha256.Sum256(o.Module)
	s := &Inspection{Size: int64(len(o.Module)), SHA256: hex.EncodeToString(sum[:])}
	_ = eachSection(o.Module, func(whole []byte, name string, _ []byte) { // its error is admit's, too
		if len(whole) == 8 && len(s.Sections) == 0 && whole[0] == 0 && whole[1] == 'a' {
			return // the header
		}
		text := "unknown"
		if id := int(whole[0]); id < len(sectionNames) {
			text = sectionNames[id]
		}
		if whole[0] == 0 {
			text = `"` + clean(name, 256) + `"`
		}
		s.Sections = append(s.Sections, Section{text, len(whole)})
	})
	o.anyConfig = true
	if m, err := o.manifest(); err == nil {
		s.Manifest = m
		o.Grants = m.Capabilities
	}
	a, err := admit(&o)
	s.Refused = err
	if err == nil {
		s.Limits = a.limits
	} else {
		s.Limits = o.Limits.withDefaults()
	}
	if int64(len(o.Module)) <= s.Limits.ModuleSize {
		s.read(o.Module)
	}
	return s
}

// read lists what the module imports and exports.
func (s *Inspection) read(module []byte) {
	bounds := meter.DefaultLimits()
	bounds.MemoryPages = s.Limits.pages()
	m, err := meter.Rewrite(module, bounds)
	if err != nil {
		return
	}
	s.Memory = int64(m.MemoryPages) * pageSize
	s.Imports, s.Exports = []Symbol{}, []Symbol{}
	for _, i := range m.Imports {
		s.Imports = append(s.Imports, Symbol{clean(i.Module, 256), clean(i.Name, 256), "function", i.Type.String()})
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, meter.Prefix) {
			continue
		}
		x := Symbol{Name: clean(e.Name, 256), Kind: kindNames[e.Kind]}
		if e.Kind == meter.Function {
			x.Type = e.Type.String()
		}
		s.Exports = append(s.Exports, x)
	}
}
