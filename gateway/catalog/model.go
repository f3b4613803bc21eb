package catalog

// Model is what is declared of one model. It is not to be changed.
type Model struct {
	// Name is the public name it was looked up by; Base the catalogue's own entry's, which
	// differs for a dated name of the same model.
	Name, Base string
	// Maker is who made it ("openai"), "" where only the operator's file describes it.
	Maker string
	// ContextWindow and MaxOutputTokens are in tokens; 0 is not declared.
	ContextWindow, MaxOutputTokens int
	// Modalities and Capabilities are empty, and the flags beside them false, where they are
	// not declared.
	Modalities           Modality
	ModalitiesDeclared   bool
	Capabilities         Capability
	CapabilitiesDeclared bool
	Price                Price
	// Source and Date say where the built-in facts were read, and when (YYYY-MM-DD); "" where
	// only the operator's file describes it.
	Source, Date string
}

// Reasons says whether the model is known to reason, so that its clocks are longer. A nil
// model is not.
func (m *Model) Reasons() bool { return m != nil && m.Capabilities.Has(Reasoning) }

// Price is in US dollars per million tokens.
type Price struct {
	Input, CachedInput, CacheWrite, Output float64
	// InputKnown and OutputKnown say whether those are declared. CachedInput and CacheWrite are
	// Input where they are not.
	InputKnown, OutputKnown bool
}

// Usage counts tokens by OpenAI's convention: cached ones (read and written) are inside Input,
// reasoning ones inside Output. Its fields are those of openai.Usage, in order, so that one
// converts to the other.
type Usage struct {
	Input, Output, Cached, Reasoning, CacheWrite int64
}

// Cost returns what a usage costs in US dollars; false where a price that it needs is not
// declared. Counts that contradict each other are held within the whole input; a provider may
// charge more for very long prompts than is told here.
func (p Price) Cost(u Usage) (usd float64, known bool) {
	input, output := max(u.Input, 0), max(u.Output, 0)
	cached := min(max(u.Cached, 0), input)
	written := min(max(u.CacheWrite, 0), input-cached)
	if input > 0 && !p.InputKnown || output > 0 && !p.OutputKnown || !p.InputKnown && !p.OutputKnown {
		return 0, false
	}
	perMillion := float64(input-cached-written)*p.Input + float64(cached)*p.CachedInput +
		float64(written)*p.CacheWrite + float64(output)*p.Output
	return perMillion / 1e6, true
}

// Cost returns what a usage costs in US dollars; false where it is not known, and for a nil
// model.
func (m *Model) Cost(u Usage) (usd float64, known bool) {
	if m == nil {
		return 0, false
	}
	return m.Price.Cost(u)
}
