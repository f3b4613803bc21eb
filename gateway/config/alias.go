package config

// Alias is a public model name with a contract.
type Alias struct {
	// The contract's version, recorded with every request.
	Version int `yaml:"version" default:"1" min:"1"`
	// The model that answers.
	Model string `yaml:"model" required:"true" is:"model"`
	// Its budget where the caller names none; left out, the key's.
	Budget string `yaml:"budget" is:"name"`
	// What an answering model and channel must satisfy.
	Requires Requires `yaml:"requires"`
	// What evaluations of a substitute must show.
	QualityGates QualityGates `yaml:"quality_gates" soon:"quality gates"`
	// Another channel with the same model before another model.
	SameModelFailoverFirst bool `yaml:"same_model_failover_first" default:"true"`
	// Whether one of the substitutes may answer.
	CrossModelFallbackAllowed bool `yaml:"cross_model_fallback_allowed"`
	// The models approved in its place, best first.
	Substitutes []Substitute `yaml:"substitutes"`
	// stream: output passes at once; buffered: the whole answer is held, validated, then sent.
	Release Release `yaml:"release" default:"stream" enum:"stream|buffered"`
	// Plugins that look at its requests and answers.
	Guards []Guard `yaml:"guards"`
}

// Requires is what an alias demands; the zero value demands nothing.
type Requires struct {
	// Content that a prompt may hold.
	Modalities []Modality `yaml:"modalities" enum:"text|image|audio|video|file"`
	// Answers as a stream.
	Streaming bool `yaml:"streaming"`
	// Function calling.
	Tools bool `yaml:"tools"`
	// Several function calls in one answer.
	ParallelToolCalls bool `yaml:"parallel_tool_calls"`
	// Structured output.
	StructuredOutput StructuredOutput `yaml:"structured_output" default:"none" enum:"none|json_object|json_schema"`
	// A context window of at least so many tokens.
	ContextWindowMin int `yaml:"context_window_min" min:"0"`
	// Answers of at least so many tokens.
	MaxOutputTokensMin int `yaml:"max_output_tokens_min" min:"0"`
	// Only channels in these regions.
	Regions []string `yaml:"regions" is:"name"`
	// Evidence of contract probes: required, preferred (verified channels first), none.
	Evidence Evidence `yaml:"evidence" default:"none" enum:"required|preferred|none"`
}

// StructuredOutput is the shape of an answer that a contract demands.
type StructuredOutput string

// The shapes.
const (
	StructuredNone       StructuredOutput = "none"
	StructuredJSONObject StructuredOutput = "json_object"
	StructuredJSONSchema StructuredOutput = "json_schema"
)

// Evidence says what proof a contract demands. Only EvidenceNone is in force yet.
type Evidence string

// The demands.
const (
	EvidenceRequired  Evidence = "required"
	EvidencePreferred Evidence = "preferred"
	EvidenceNone      Evidence = "none"
)

// QualityGates are rates, 0 to 1, that a substitute must reach. Not in force yet.
type QualityGates struct {
	// Tasks that succeeded.
	TaskSuccessRateMin Opt[float64] `yaml:"task_success_rate_min" min:"0" max:"1"`
	// Answers that kept to their schema.
	SchemaValidRateMin Opt[float64] `yaml:"schema_valid_rate_min" min:"0" max:"1"`
	// Safety probes passed.
	SafetyPassRateMin Opt[float64] `yaml:"safety_pass_rate_min" min:"0" max:"1"`
}

// Substitute is one model approved in an alias's place.
type Substitute struct {
	// Its public name.
	Model string `yaml:"model" required:"true" is:"model"`
	// What it may cost; left out, anything.
	PriceCeiling PriceCeiling `yaml:"price_ceiling"`
}

// PriceCeiling is in US dollars per million tokens; what is not set is not limited.
type PriceCeiling struct {
	// Prompt tokens.
	Input Opt[float64] `yaml:"input" min:"0"`
	// Answer tokens.
	Output Opt[float64] `yaml:"output" min:"0"`
}

// Release says when output goes to the caller.
type Release string

// The releases.
const (
	ReleaseStream   Release = "stream"
	ReleaseBuffered Release = "buffered"
)
