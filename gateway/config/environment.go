package config

// Start is a configuration made from the environment, with no file.
type Start struct {
	Config *Config
	// Key is the caller's key that was generated, to be printed once.
	Key Secret
	// Warnings name variables that are set and cannot be used yet.
	Warnings []string
}

// NoProviderError says that no variable is set from which a start could be made, and which
// would be.
type NoProviderError struct {
	Variables   []string // that make a channel
	Unavailable []string // that are set, and whose adapter this version does not have
}

func (e *NoProviderError) Error() string { panic("skeleton") }

// FromEnv makes a configuration from the environment alone: a channel for each provider whose
// variable is set. makers maps the catalogue's model names to their makers: such a model goes
// to its maker's channel, any other to the first. The error is a *NoProviderError.
func FromEnv(lookup func(name string) (string, bool), makers map[string]string) (*Start, error) {
	panic("skeleton")
}
