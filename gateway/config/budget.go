package config

import "time"

// Interactive is the budget that always exists.
const Interactive = "interactive"

// Budget is what one request may spend.
type Budget struct {
	// Until output is committed: queue, backoff and attempts together. A committed stream is
	// bounded by idle and max_duration.
	Deadline time.Duration `yaml:"deadline" default:"10m" min:"1ms"`
	// The longest request, its stream included.
	MaxDuration time.Duration `yaml:"max_duration" default:"30m" min:"1ms"`
	// Attempts of one request.
	MaxAttempts int `yaml:"max_attempts" default:"4" min:"1" max:"100"`
	// Attempts over the requests of one user action since its last success, 10 minutes at most.
	MaxAttemptsPerUserAction int `yaml:"max_attempts_per_user_action" default:"6" min:"1" max:"1000"`
	// Attempts on one route; 1 is no same-route retry. Never limits fallback.
	MaxAttemptsPerRoute int `yaml:"max_attempts_per_route" default:"2" min:"1" max:"100"`
	// Attempts within one group.
	MaxAttemptsPerGroup int `yaml:"max_attempts_per_group" default:"4" min:"1" max:"100"`
	// A share of the deadline, or a duration; at most a third. While an untried equal route or
	// substitute is left, an attempt without meaningful output ends when only this remains. No
	// reserve where it would be less than min_useful.
	ReserveForFallback Share `yaml:"reserve_for_fallback" default:"20%"`
	// With less than this left no further attempt starts.
	MinUseful time.Duration `yaml:"min_useful" default:"500ms"`
	// The waits between attempts on one route.
	Backoff Backoff `yaml:"backoff"`
}

// Backoff is exponential with full jitter.
type Backoff struct {
	// The bound of the first wait; doubles with each.
	Base time.Duration `yaml:"base" default:"200ms"`
	// The largest bound.
	Max time.Duration `yaml:"max" default:"2s"`
	// A longer Retry-After does not fit.
	MaxWait time.Duration `yaml:"max_wait" default:"20s"`
}

// Reserve returns the time kept for fallback: 0 where it would be less than min_useful.
func (b *Budget) Reserve() time.Duration {
	r := b.ReserveForFallback.Of(b.Deadline)
	if r < b.MinUseful {
		return 0
	}
	return r
}
