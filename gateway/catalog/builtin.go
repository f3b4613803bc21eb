package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// modelsJSON is the built-in catalogue: facts with their source and the day they were read.
//
//go:embed models.json
var modelsJSON []byte

// entry is one model of the built-in catalogue.
type entry struct {
	Name            string              `json:"name"`
	Maker           string              `json:"maker"`
	Also            []string            `json:"also"` // other names of the same model, dated ones
	ContextWindow   int                 `json:"context_window"`
	MaxOutputTokens int                 `json:"max_output_tokens"`
	Modalities      []config.Modality   `json:"modalities"`
	Capabilities    []config.Capability `json:"capabilities"`
	Price           struct {
		Input       *float64 `json:"input"`
		CachedInput *float64 `json:"cached_input"`
		CacheWrite  *float64 `json:"cache_write"`
		Output      *float64 `json:"output"`
	} `json:"price"`
	Source string `json:"source"`
	Date   string `json:"date"`
	Note   string `json:"note"`
}

var builtin = sync.OnceValue(func() (list []entry) {
	d := json.NewDecoder(bytes.NewReader(modelsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		panic("catalog: models.json: " + err.Error())
	}
	return list
})

func (e *entry) model() Model {
	m := Model{
		Name: e.Name, Base: e.Name, Maker: e.Maker, Source: e.Source, Date: e.Date,
		ContextWindow: e.ContextWindow, MaxOutputTokens: e.MaxOutputTokens,
		Modalities: modalitiesOf(e.Modalities), ModalitiesDeclared: true,
		Capabilities: capabilitiesOf(e.Capabilities), CapabilitiesDeclared: true,
	}
	m.Price.set(e.Price.Input, e.Price.CachedInput, e.Price.CacheWrite, e.Price.Output)
	return m
}

// set takes the prices that are given; nil ones stay as they are.
func (p *Price) set(input, cached, write, output *float64) {
	if input != nil {
		// What was never told apart from the input price stays that.
		if !p.InputKnown || p.CachedInput == p.Input {
			p.CachedInput = *input
		}
		if !p.InputKnown || p.CacheWrite == p.Input {
			p.CacheWrite = *input
		}
		p.Input, p.InputKnown = *input, true
	}
	if cached != nil {
		p.CachedInput = *cached
	}
	if write != nil {
		p.CacheWrite = *write
	}
	if output != nil {
		p.Output, p.OutputKnown = *output, true
	}
}

// override lays what the operator's file says of a model over what is known of it.
func (m *Model) override(c config.Model) {
	m.ContextWindow = c.ContextWindow.Or(m.ContextWindow)
	m.MaxOutputTokens = c.MaxOutputTokens.Or(m.MaxOutputTokens)
	if c.Modalities != nil {
		m.Modalities, m.ModalitiesDeclared = modalitiesOf(c.Modalities), true
	}
	if c.Capabilities != nil {
		m.Capabilities, m.CapabilitiesDeclared = capabilitiesOf(c.Capabilities), true
	}
	m.Price.set(pointer(c.Price.Input), pointer(c.Price.CachedInput), pointer(c.Price.CacheWrite), pointer(c.Price.Output))
}

func pointer(o config.Opt[float64]) *float64 {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// Makers lists each name of the built-in catalogue, dated ones included, with its maker: what
// config.FromEnv asks for.
func Makers() map[string]config.Catalogued {
	all := map[string]config.Catalogued{}
	for _, e := range builtin() {
		all[e.Name] = config.Catalogued{Maker: e.Maker}
		for _, also := range e.Also {
			all[also] = config.Catalogued{Maker: e.Maker, Dated: true}
		}
	}
	return all
}
