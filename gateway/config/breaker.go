package config

import "time"

// Breaker says when a circuit opens and how it closes. Either rule opens it; 0 switches a
// rule off.
type Breaker struct {
	// The time over which outcomes are counted.
	Window time.Duration `yaml:"window" default:"60s" min:"1ms"`
	// Fewer requests in the window say nothing about the ratio.
	MinRequests int `yaml:"min_requests" default:"10" min:"1"`
	// The share of failures that opens; 0: this rule is off.
	FailureRatio float64 `yaml:"failure_ratio" default:"0.5" min:"0" max:"1"`
	// The failures in a row that open; 0: this rule is off.
	ConsecutiveFailures int `yaml:"consecutive_failures" default:"5" min:"0"`
	// How long it stays open, exactly; doubles with each failed probe.
	OpenFor time.Duration `yaml:"open_for" default:"15s" min:"1ms"`
	// The longest it stays open.
	MaxOpen time.Duration `yaml:"max_open" default:"2m" min:"1ms"`
	// Probes at the same time; that many successes close it.
	HalfOpenProbes int `yaml:"half_open_probes" default:"1" min:"1" max:"1000"`
	// A closed circuit gets its share back over this time, where other equal routes exist.
	Ramp time.Duration `yaml:"ramp" default:"10s"`
}
