package config

// Config is one whole configuration.
type Config struct {
	// The version of the file's format.
	Version int `yaml:"version" default:"1" min:"1" max:"1"`
	// Whether a change of this file, of a secret's file or of a certificate starts a reload.
	Watch bool `yaml:"watch" default:"true"`
	// Where callers come in.
	Listen Listen `yaml:"listen"`
	// Where operators come in: health, metrics, the admin API.
	Admin Admin `yaml:"admin"`
	// The folder of generated state: plugin cache, last good bundles, spool.
	DataDir string `yaml:"data_dir" default:"data" is:"path"`
	// Where the ledger and the control state are kept.
	Storage Storage `yaml:"storage"`
	// What several replicas share.
	SharedState SharedState `yaml:"shared_state"`
	// The policy that decides.
	Policy Policy `yaml:"policy"`
	// Wasm plugins.
	Plugins []Plugin `yaml:"plugins"`
	// Providers by name: a wire format and a base URL each.
	Providers map[string]Provider `yaml:"providers" keys:"name"`
	// Models by public name: adds to and overrides the built-in catalogue, key by key.
	Models map[string]Model `yaml:"models" keys:"model"`
	// Pools of channels.
	Groups []Group `yaml:"groups"`
	// Callers' API keys.
	Keys []Key `yaml:"keys"`
	// Named budgets. `interactive` exists even if it is not listed.
	Budgets map[string]Budget `yaml:"budgets" keys:"name"`
	// Public names with a contract.
	Aliases map[string]Alias `yaml:"aliases" keys:"model"`
	// When a route is taken out of use, and for how long.
	Breaker Breaker `yaml:"breaker"`
	// How streams are handled.
	Stream Stream `yaml:"stream"`
	// The share of a route's requests that may be same-route retries.
	RetryBudget RetryBudget `yaml:"retry_budget" soon:"retry budgets"`
	// What keeps requests that belong together on one channel.
	Affinity Affinity `yaml:"affinity" soon:"affinity"`
	// Traces.
	Tracing Tracing `yaml:"tracing"`
	// Log lines.
	Log Log `yaml:"log"`
}

// Group returns the group of that name.
func (c *Config) Group(name string) (*Group, bool) {
	for i := range c.Groups {
		if c.Groups[i].Name == name {
			return &c.Groups[i], true
		}
	}
	return nil, false
}
