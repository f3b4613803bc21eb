package catalog

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// Contract is an alias's contract, compiled.
type Contract struct {
	Alias       string
	Version     int
	Model       string
	Budget      string // "" = the key's
	Release     config.Release
	Demand      Demand
	Requires    config.Requires
	Gates       config.QualityGates
	Substitutes []Substitute // in the file's order
	// SubstitutionAllowed says whether any substitute may answer at all.
	SubstitutionAllowed bool
	// Fingerprint names what the contract demands, in 16 hex digits; it changes with it.
	Fingerprint string
}

// Substitute is a model listed in an alias's place.
type Substitute struct {
	Model   string
	Ceiling config.PriceCeiling
}

// Demand is what a contract demands of a model; the zero value nothing.
type Demand struct {
	Modalities      Modality
	Capabilities    Capability
	ContextWindow   int // tokens, at least
	MaxOutputTokens int // tokens, at least
}

func contractOf(name string, a config.Alias) *Contract {
	c := &Contract{
		Alias: name, Version: a.Version, Model: a.Model, Budget: a.Budget, Release: a.Release,
		Demand: demandOf(a.Requires), Requires: a.Requires, Gates: a.QualityGates,
		SubstitutionAllowed: a.CrossModelFallbackAllowed,
	}
	for _, s := range a.Substitutes {
		c.Substitutes = append(c.Substitutes, Substitute{Model: s.Model, Ceiling: s.PriceCeiling})
	}
	c.Fingerprint = config.Digest(struct {
		Alias    string
		Version  int
		Model    string
		Requires config.Requires
		Gates    config.QualityGates
	}{name, a.Version, a.Model, a.Requires, a.QualityGates})[:16]
	return c
}

func demandOf(r config.Requires) Demand {
	d := Demand{
		Modalities: modalitiesOf(r.Modalities), ContextWindow: r.ContextWindowMin, MaxOutputTokens: r.MaxOutputTokensMin,
	}
	for capability, demanded := range map[Capability]bool{
		Streaming:         r.Streaming,
		Tools:             r.Tools,
		ParallelToolCalls: r.ParallelToolCalls,
		JSONObject:        r.StructuredOutput == config.StructuredJSONObject,
		JSONSchema:        r.StructuredOutput == config.StructuredJSONSchema,
	} {
		if demanded {
			d.Capabilities |= capability
		}
	}
	return d
}

// Substitute returns the entry of a model listed in the alias's place; false where it is not.
func (c *Contract) Substitute(model string) (Substitute, bool) {
	for _, s := range c.Substitutes {
		if s.Model == model {
			return s, true
		}
	}
	return Substitute{}, false
}

// AllowsRegion says whether an answer may come from a channel in that region.
func (c *Contract) AllowsRegion(region string) bool {
	return len(c.Requires.Regions) == 0 || slices.Contains(c.Requires.Regions, region)
}

// Satisfies says whether a model satisfies a demand, and in words what it lacks. What is not
// declared of a model it lacks; a nil model lacks whatever is demanded. It allocates only
// where something is missing.
func (m *Model) Satisfies(d Demand) (ok bool, missing []string) {
	if m == nil {
		m = &unknown
	}
	for _, w := range (d.Modalities &^ m.Modalities).Words() {
		missing = append(missing, "modality "+w)
	}
	missing = append(missing, (d.Capabilities &^ m.Capabilities).Words()...)
	missing = atLeast(missing, "context_window", m.ContextWindow, d.ContextWindow)
	missing = atLeast(missing, "max_output_tokens", m.MaxOutputTokens, d.MaxOutputTokens)
	return len(missing) == 0, missing
}

var unknown Model

func atLeast(missing []string, what string, has, want int) []string {
	switch {
	case has >= want:
		return missing
	case has == 0:
		return append(missing, fmt.Sprintf("%s of %d (not declared)", what, want))
	default:
		return append(missing, fmt.Sprintf("%s of %d (has %d)", what, want, has))
	}
}

// Within says whether a model's price stays under a ceiling, and if not why. A price that is
// not declared is not within a ceiling that is set.
func (m *Model) Within(c config.PriceCeiling) (ok bool, why string) {
	if m == nil {
		m = &unknown
	}
	var over []string
	over = under(over, "input", c.Input, m.Price.Input, m.Price.InputKnown)
	over = under(over, "output", c.Output, m.Price.Output, m.Price.OutputKnown)
	return len(over) == 0, strings.Join(over, ", ")
}

func under(over []string, what string, ceiling config.Opt[float64], price float64, known bool) []string {
	switch {
	case !ceiling.Set || known && price <= ceiling.Value:
		return over
	case !known:
		return append(over, "its "+what+" price is not declared")
	default:
		return append(over, "its "+what+" price "+dollars(price)+" is above the ceiling "+dollars(ceiling.Value))
	}
}

func dollars(f float64) string { return "$" + strconv.FormatFloat(f, 'f', -1, 64) }

// Implied returns the fingerprint of the contract that a request without an alias has: of the
// model's name and the facts of the request. It is the same in every process.
func Implied(model, endpoint string, d Demand, stream bool) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(model))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(endpoint))
	s := byte(0)
	if stream {
		s = 1
	}
	_, _ = h.Write([]byte{
		0, s, byte(d.Modalities), byte(d.Capabilities), byte(d.Capabilities >> 8),
		byte(d.ContextWindow), byte(d.ContextWindow >> 8), byte(d.ContextWindow >> 16), byte(d.ContextWindow >> 24),
		byte(d.MaxOutputTokens), byte(d.MaxOutputTokens >> 8), byte(d.MaxOutputTokens >> 16), byte(d.MaxOutputTokens >> 24),
	})
	var out [8]byte
	return hex.EncodeToString(h.Sum(out[:0]))
}
