package catalog

import "github.com/interlock-gateway/interlock/gateway/config"

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

// Satisfies says whether a model satisfies a demand, and in words what it lacks. What is not
// declared of a model it lacks; a nil model lacks whatever is demanded.
func (m *Model) Satisfies(d Demand) (ok bool, missing []string) { panic("skeleton") }

// Within says whether a model's price stays under a ceiling, and if not why. A price that is
// not declared is not within a ceiling that is set.
func (m *Model) Within(c config.PriceCeiling) (ok bool, why string) { panic("skeleton") }

// Implied returns the fingerprint of the contract that a request without an alias has: of the
// model's name and the facts of the request.
func Implied(model, endpoint string, d Demand, stream bool) string { panic("skeleton") }
