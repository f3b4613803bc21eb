package config

import "time"

// Group is an ordered pool of channels with one admission.
type Group struct {
	// Unique among the groups.
	Name string `yaml:"name" required:"true" is:"name"`
	// Admissions of requests in any 60 s, the whole burst allowed; 0 is no limit.
	RPM int `yaml:"rpm" min:"0"`
	// How its channels are ordered for a request.
	Strategy Strategy `yaml:"strategy" default:"priority" enum:"priority|weighted|least_latency|least_cost"`
	// Its channels.
	Channels []Channel `yaml:"channels" required:"true"`
}

// Strategy orders a group's channels.
type Strategy string

// The strategies. LeastLatency and LeastCost are not in force yet: Priority holds instead.
const (
	Priority     Strategy = "priority"
	Weighted     Strategy = "weighted"
	LeastLatency Strategy = "least_latency"
	LeastCost    Strategy = "least_cost"
)

// Channel is one way into one account.
type Channel struct {
	// Unique within its group.
	Name string `yaml:"name" required:"true" is:"name"`
	// The provider's name.
	Provider string `yaml:"provider" required:"true" is:"name"`
	// The provider's API key.
	Credential Secret `yaml:"credential" is:"header_value"`
	// What the provider bills and throttles; channels that name the same account share its
	// rate limits. Left out, the channel itself: GROUP/NAME.
	Account string `yaml:"account" is:"name"`
	// Where it is, as aliases and admissions name regions.
	Region string `yaml:"region" is:"name"`
	// Lower goes first; equal ones by weight.
	Priority int `yaml:"priority" default:"10" min:"0" max:"1000000"`
	// Its share among equals.
	Weight int `yaml:"weight" default:"1" min:"1" max:"1000000"`
	// Attempts at the same time.
	MaxConcurrency int `yaml:"max_concurrency" default:"64" min:"1" max:"1000000"`
	// Those that wait for one of these places.
	Queue Queue `yaml:"queue"`
	// The models it serves, by public name, or "*": any name passes.
	Models Served `yaml:"models" required:"true"`
	// The clocks of an attempt.
	Timeouts Timeouts `yaml:"timeouts"`
}

// AccountName returns the account: the channel itself, GROUP/NAME, where none is configured.
func (c *Channel) AccountName(group string) string {
	if c.Account != "" {
		return c.Account
	}
	return group + "/" + c.Name
}

// Queue is where attempts wait for a channel. It is fair over keys.
type Queue struct {
	// The longest queue; 0: none waits.
	Max int `yaml:"max" default:"256" min:"0" max:"1000000"`
	// The longest wait.
	Wait time.Duration `yaml:"wait" default:"2s"`
}

// Served is what a channel serves.
type Served struct {
	// Any says that any name passes, those in Models included.
	Any bool
	// Models are the models named, by public name.
	Models map[string]ChannelModel
	// Unlisted are names that are served too, and stand in no list of models; Except are names
	// that are not served though Any is set. Only a start from the environment sets them: there
	// a catalogued model goes to its maker's channel, under its dated names too.
	Unlisted, Except map[string]struct{}
}

// Lookup returns how the channel serves a model; false where it does not. With "*" a model
// that is not named goes upstream under its own name.
func (s *Served) Lookup(model string) (ChannelModel, bool) {
	if m, ok := s.Models[model]; ok {
		return m, true
	}
	if _, ok := s.Unlisted[model]; ok {
		return ChannelModel{}, true
	}
	if !s.Any {
		return ChannelModel{}, false
	}
	_, except := s.Except[model]
	return ChannelModel{}, !except
}

// ChannelModel is one model as a channel serves it.
type ChannelModel struct {
	// A dated name of the same model, which the provider is asked for; left out, the public
	// name. It must be the same model: a mapping to another one is a substitution.
	UpstreamModel string `yaml:"upstream_model" is:"model"`
	// Clocks of this model only.
	Timeouts Timeouts `yaml:"timeouts"`
}

// Upstream returns the name that the provider is asked for.
func (m ChannelModel) Upstream(public string) string {
	if m.UpstreamModel != "" {
		return m.UpstreamModel
	}
	return public
}
