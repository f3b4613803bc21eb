package catalog

// Capability is a set of things that a model can do.
type Capability uint16

// The capabilities.
const (
	Streaming Capability = 1 << iota
	Tools
	ParallelToolCalls
	JSONObject
	JSONSchema
	Reasoning
	Embeddings
	Moderation
)

// Modality is a set of kinds of content.
type Modality uint8

// The modalities.
const (
	Text Modality = 1 << iota
	Image
	Audio
	Video
	File
)

// Has says whether all of want are in the set.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Words lists the set in the configuration's words, in a fixed order.
func (c Capability) Words() []string { panic("skeleton") }

// Has says whether all of want are in the set.
func (m Modality) Has(want Modality) bool { return m&want == want }

// Words lists the set in the configuration's words, in a fixed order.
func (m Modality) Words() []string { panic("skeleton") }
