package config

// Model describes a model: adds it to the built-in catalogue, or overrides there what is set
// here. What is left out is not declared.
type Model struct {
	// Tokens of prompt and answer together.
	ContextWindow Opt[int] `yaml:"context_window" min:"1"`
	// The longest answer in tokens.
	MaxOutputTokens Opt[int] `yaml:"max_output_tokens" min:"1"`
	// What a prompt may hold.
	Modalities []Modality `yaml:"modalities" enum:"text|image|audio|video|file"`
	// What it can do.
	Capabilities []Capability `yaml:"capabilities" enum:"streaming|tools|parallel_tool_calls|json_object|json_schema|reasoning|embeddings|moderation"`
	// What it costs.
	Price Price `yaml:"price"`
}

// Price is in US dollars per million tokens.
type Price struct {
	// Prompt tokens.
	Input Opt[float64] `yaml:"input" min:"0"`
	// Prompt tokens read from the provider's cache; left out, as input.
	CachedInput Opt[float64] `yaml:"cached_input" min:"0"`
	// Prompt tokens written to the provider's cache; left out, as input.
	CacheWrite Opt[float64] `yaml:"cache_write" min:"0"`
	// Answer tokens, reasoning included.
	Output Opt[float64] `yaml:"output" min:"0"`
}

// Modality is one kind of content.
type Modality string

// The modalities.
const (
	ModalityText  Modality = "text"
	ModalityImage Modality = "image"
	ModalityAudio Modality = "audio"
	ModalityVideo Modality = "video"
	ModalityFile  Modality = "file"
)

// Capability is one thing that a model can do.
type Capability string

// The capabilities. JSONSchema implies JSONObject, ParallelToolCalls implies Tools.
const (
	Streaming         Capability = "streaming"
	Tools             Capability = "tools"
	ParallelToolCalls Capability = "parallel_tool_calls"
	JSONObject        Capability = "json_object"
	JSONSchema        Capability = "json_schema"
	Reasoning         Capability = "reasoning"
	Embeddings        Capability = "embeddings"
	Moderation        Capability = "moderation"
)
