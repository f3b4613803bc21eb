package config

import "time"

// Stream says how streams are handled.
type Stream struct {
	// The longest silence before output: then a comment line is sent, which commits the
	// status. 0 is off.
	Heartbeat time.Duration `yaml:"heartbeat" default:"50s"`
	// The largest event of an upstream's stream.
	MaxEvent Size `yaml:"max_event" default:"32MiB" min:"1KiB" max:"1GiB"`
	// What becomes of the upstream call when the caller leaves mid-stream: abort it, or read
	// on for a bounded time for the sake of an exact usage.
	AfterDisconnect AfterDisconnect `yaml:"after_disconnect" default:"abort" enum:"abort|drain"`
}

// AfterDisconnect says what becomes of a stream whose caller has left.
type AfterDisconnect string

// The ways.
const (
	DisconnectAbort AfterDisconnect = "abort"
	DisconnectDrain AfterDisconnect = "drain"
)

// RetryBudget bounds same-route retries per route. Not in force yet.
type RetryBudget struct {
	// The share of a route's requests.
	Ratio float64 `yaml:"ratio" default:"0.2" min:"0" max:"1"`
	// So many are always allowed.
	Min int `yaml:"min" default:"10" min:"0"`
	// The time over which they are counted.
	Window time.Duration `yaml:"window" default:"10s" min:"1ms"`
}

// Affinity keeps requests that belong together on one channel, for the sake of prompt caches.
// It chooses the first candidate only. Not in force yet.
type Affinity struct {
	// What makes them belong together.
	By []string `yaml:"by" enum:"interlock-session|prompt_cache_key|user|prefix"`
	// How long a choice is remembered.
	TTL time.Duration `yaml:"ttl" default:"1h" min:"1s"`
}

func (a Affinity) asks() bool { return len(a.By) > 0 }

func (s Spend) asks() bool { return s.USD > 0 }

// Tracing says where traces go.
type Tracing struct {
	// The address of an OTLP collector; empty: no traces.
	OTLPEndpoint string `yaml:"otlp_endpoint" soon:"tracing"`
}

// Log says what is logged and how.
type Log struct {
	// The least important lines that are written.
	Level LogLevel `yaml:"level" default:"info" enum:"debug|info|warn|error"`
	// JSON objects, or text for people.
	Format LogFormat `yaml:"format" default:"json" enum:"json|text"`
}

// LogLevel is the importance of a log line.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The forms.
const (
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)
