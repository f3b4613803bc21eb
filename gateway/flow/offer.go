package flow

import (
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// offer is what the catalogue declares of a model, and how policies see it as a substitute.
// A model of which nothing is declared is never refused for what a request asks.
type offer struct {
	model    *catalog.Model // nil = nothing is known
	asPolicy policy.Candidate
}

var unknownOffer = &offer{asPolicy: policy.Candidate{Price: policy.Price{Input: -1, Output: -1}, Evidence: policy.NoEvidence}}

func (g *Generation) offer(model string) *offer {
	if o := g.offers[model]; o != nil {
		return o
	}
	return unknownOffer
}

func priceOf(m *catalog.Model) policy.Price {
	p := policy.Price{Input: -1, Output: -1}
	if m != nil && m.Price.InputKnown {
		p.Input = m.Price.Input
	}
	if m != nil && m.Price.OutputKnown {
		p.Output = m.Price.Output
	}
	return p
}

// lacks names the parameter of the request that the model is declared unable to honour; ""
// if there is none.
func (o *offer) lacks(r *openai.Request) string {
	m := o.model
	if m == nil {
		return ""
	}
	if m.MaxOutputTokens > 0 && r.MaxOutputTokens > int64(m.MaxOutputTokens) {
		return "max_tokens"
	}
	if m.ModalitiesDeclared && !holds(m.Modalities, r.Modalities) {
		return "messages"
	}
	if !m.CapabilitiesDeclared {
		return ""
	}
	switch c := m.Capabilities; {
	case r.Stream && !c.Has(catalog.Streaming):
		return "stream"
	case r.Tools && !c.Has(catalog.Tools):
		return "tools"
	case r.Structure == openai.JSONSchema && !c.Has(catalog.JSONSchema),
		r.Structure == openai.JSONObject && !c.Has(catalog.JSONObject):
		return "response_format"
	default:
		return ""
	}
}

func holds(has catalog.Modality, want openai.Modality) bool {
	return (want&openai.Image == 0 || has.Has(catalog.Image)) &&
		(want&openai.Audio == 0 || has.Has(catalog.Audio))
}

// fits reports whether the prompt, by a rough estimate, and the answer fit a substitute's
// window. A model asked for by name is never refused for it: its provider counts better.
func (o *offer) fits(r *openai.Request) bool {
	m := o.model
	return m == nil || m.ContextWindow == 0 || r.InputTokens+r.MaxOutputTokens <= int64(m.ContextWindow)
}

// cost is what an answer costs in US dollars; false where no price is declared.
func (o *offer) cost(u openai.Usage) (float64, bool) { return o.model.Cost(catalog.Usage(u)) }
