package config

import "time"

// Plugin is one Wasm plugin.
type Plugin struct {
	// Unique among the plugins.
	Name string `yaml:"name" required:"true" is:"name"`
	// builtin:NAME, file:PATH or an https URL.
	Source string `yaml:"source" required:"true" is:"source"`
	// The module's SHA-256 in hex; required for https.
	SHA256 string `yaml:"sha256" is:"sha256"`
	// What its calls may use.
	Limits PluginLimits `yaml:"limits"`
	// The capabilities and hosts granted to it.
	Grants []string `yaml:"grants"`
	// Its own configuration: any mapping.
	Config Document `yaml:"config"`
}

// PluginLimits bound a plugin's calls.
type PluginLimits struct {
	// The largest memory of one instance.
	Memory Size `yaml:"memory" default:"64MiB" min:"64KiB" max:"4GiB"`
	// Sets the budget of work of one call (the wall clock is ten times it); grows by 150ms per
	// MiB of input.
	CallTimeout time.Duration `yaml:"call_timeout" default:"100ms" min:"1ms" max:"1m"`
}

// Guard is a plugin that looks at requests and answers.
type Guard struct {
	// The plugin's name.
	Plugin string `yaml:"plugin" required:"true" is:"name"`
	// What it sees.
	On []GuardPoint `yaml:"on" required:"true" enum:"request|response|events"`
	// What its own failure means: closed refuses, open lets pass.
	OnError OnError `yaml:"on_error" default:"closed" enum:"closed|open"`
}

// GuardPoint is what a guard sees.
type GuardPoint string

// The points.
const (
	GuardRequest  GuardPoint = "request"
	GuardResponse GuardPoint = "response"
	GuardEvents   GuardPoint = "events"
)

// OnError is what a guard's own failure means.
type OnError string

// The meanings.
const (
	OnErrorClosed OnError = "closed"
	OnErrorOpen   OnError = "open"
)
