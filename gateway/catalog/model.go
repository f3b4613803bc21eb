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
	// Source and Date say where the built-in facts were read, and when (YYYY-MM-DD).
	Source, Date string
}

// Price is in US dollars per million tokens.
type Price struct {
	Input, CachedInput, CacheWrite, Output float64
	// InputKnown and OutputKnown say whether those are declared. CachedInput and CacheWrite are
	// Input where they are not.
	InputKnown, OutputKnown bool
}

// Usage counts tokens by OpenAI's convention: cached ones (read and written) are inside Input,
// reasoning ones inside Output. Its fields are those of openai.Usage.
type Usage struct {
	Input, Output, Cached, Reasoning, CacheWrite int64
}

// Cost returns what a usage costs in US dollars; false where a price that it needs is not
// declared.
func (p Price) Cost(u Usage) (usd float64, known bool) { panic("skeleton") }
