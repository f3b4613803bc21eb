package catalog

import "github.com/interlock-gateway/interlock/gateway/config"

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

// capabilities are the words in the order of the bits.
var capabilities = []config.Capability{
	config.Streaming, config.Tools, config.ParallelToolCalls, config.JSONObject,
	config.JSONSchema, config.Reasoning, config.Embeddings, config.Moderation,
}

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

// modalities are the words in the order of the bits.
var modalities = []config.Modality{
	config.ModalityText, config.ModalityImage, config.ModalityAudio, config.ModalityVideo, config.ModalityFile,
}

// Has says whether all of want are in the set.
func (c Capability) Has(want Capability) bool { return c&want == want }

// Words lists the set in the configuration's words, in a fixed order; nil for the empty set.
func (c Capability) Words() []string { return words(c, capabilities) }

// Has says whether all of want are in the set.
func (m Modality) Has(want Modality) bool { return m&want == want }

// Words lists the set in the configuration's words, in a fixed order; nil for the empty set.
func (m Modality) Words() []string { return words(m, modalities) }

func words[S ~uint8 | ~uint16, W ~string](set S, all []W) (list []string) {
	for i, w := range all {
		if set&(1<<i) != 0 {
			list = append(list, string(w))
		}
	}
	return list
}

func setOf[S ~uint8 | ~uint16, W ~string](list, all []W) (set S) {
	for _, w := range list {
		for i, known := range all {
			if w == known {
				set |= 1 << i
			}
		}
	}
	return set
}

// capabilitiesOf is the set of the words, and of what they imply.
func capabilitiesOf(list []config.Capability) Capability {
	c := setOf[Capability](list, capabilities)
	if c.Has(JSONSchema) {
		c |= JSONObject
	}
	if c.Has(ParallelToolCalls) {
		c |= Tools
	}
	return c
}

func modalitiesOf(list []config.Modality) Modality { return setOf[Modality](list, modalities) }

// ParseCapabilities is the set of the words, and of what they imply. Words that are no
// capability are left out.
func ParseCapabilities(list []string) Capability {
	known := make([]config.Capability, len(list))
	for i, w := range list {
		known[i] = config.Capability(w)
	}
	return capabilitiesOf(known)
}
