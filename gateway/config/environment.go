package config

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Start is a configuration made from the environment, with no file.
type Start struct {
	Config *Config
	// Key is the caller's key that was generated, to be printed once.
	Key Secret
	// Warnings name variables that are set and cannot be used.
	Warnings []string
}

// Catalogued is what a start from the environment needs to know of a model.
type Catalogued struct {
	Maker string
	Dated bool // a dated name of another entry
}

// known is one variable from which a start can be made. The provider's, the channel's and the
// maker's name are the same word.
type known struct {
	variable, maker, baseURL string
	adapter                  AdapterRef
}

var native = AdapterRef{Kind: AdapterNative, Name: "openai"}

func plugin(name string) AdapterRef { return AdapterRef{Kind: AdapterPlugin, Name: name} }

// variables are in the order in which the first one set serves what no maker claims.
var variables = []known{
	{"OPENAI_API_KEY", "openai", "https://api.openai.com/v1", native},
	{"ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com", plugin("anthropic")},
	{"GEMINI_API_KEY", "gemini", "https://generativelanguage.googleapis.com", plugin("gemini")},
	{"MISTRAL_API_KEY", "mistral", "https://api.mistral.ai/v1", native},
	{"DEEPSEEK_API_KEY", "deepseek", "https://api.deepseek.com/v1", native},
	{"XAI_API_KEY", "xai", "https://api.x.ai/v1", native},
	{"COHERE_API_KEY", "cohere", "https://api.cohere.com", plugin("cohere")},
	{"GROQ_API_KEY", "groq", "https://api.groq.com/openai/v1", native},
	{"CEREBRAS_API_KEY", "cerebras", "https://api.cerebras.ai/v1", native},
	{"TOGETHER_API_KEY", "together", "https://api.together.xyz/v1", native},
	{"PERPLEXITY_API_KEY", "perplexity", "https://api.perplexity.ai", native},
	{"OPENROUTER_API_KEY", "openrouter", "https://openrouter.ai/api/v1", native},
}

func (k known) available() bool { return k.adapter == native }

// NoProviderError says that no variable is set from which a start could be made, and which
// would be.
type NoProviderError struct {
	Variables []string // that would do
	Unusable  []string // what is wrong with those that are set
}

func (e *NoProviderError) Error() string {
	s := "no configuration file, and no provider's API key in the environment. Set one of " +
		strings.Join(e.Variables, ", ") + "; or write an " + DefaultFile + " and name it with --config or INTERLOCK_CONFIG; or try `interlock demo`, which needs nothing"
	if len(e.Unusable) > 0 {
		s += " (" + strings.Join(e.Unusable, "; ") + ")"
	}
	return s
}

// FromEnv makes a configuration from the environment alone: on loopback, a group `default`
// with a channel for each provider whose variable is set and whose adapter exists, and one
// generated key. A model of the catalogue goes to its maker's channel, any other to the first.
// INTERLOCK_ADMIN_TOKEN, if set, is the admin's token. The error is a *NoProviderError.
func FromEnv(lookup func(name string) (string, bool), catalogue map[string]Catalogued) (*Start, error) {
	start := &Start{Key: Secret("ik-" + strings.ToLower(rand.Text()))}
	var missing NoProviderError
	var channels []Channel
	c := new(Config)
	fill(c)
	c.Watch = false
	c.Providers = map[string]Provider{}
	for _, k := range variables {
		if k.available() {
			missing.Variables = append(missing.Variables, k.variable)
		}
		value, _ := lookup(k.variable)
		value = strings.TrimSpace(value)
		switch {
		case value == "":
			continue
		case !k.available():
			start.Warnings = append(start.Warnings, fmt.Sprintf("%s is not used: this version does not have the adapter %s yet", k.variable, k.adapter.Name))
			continue
		case !formats["token"].ok(value):
			start.Warnings = append(start.Warnings, k.variable+" is not used: its value has characters that no API key has")
			continue
		}
		var p Provider
		fill(&p)
		p.Adapter, p.BaseURL = k.adapter, k.baseURL
		c.Providers[k.maker] = p
		var ch Channel
		fill(&ch)
		ch.Name, ch.Provider, ch.Credential = k.maker, k.maker, Secret(value)
		channels = append(channels, ch)
	}
	if len(channels) == 0 {
		missing.Unusable = start.Warnings
		return nil, &missing
	}
	share(channels, catalogue)
	var g Group
	fill(&g)
	g.Name, g.Channels = "default", channels
	var key Key
	fill(&key)
	key.Name, key.Key, key.Groups = "default", start.Key, []string{g.Name}
	c.Groups, c.Keys = []Group{g}, []Key{key}
	if token, _ := lookup("INTERLOCK_ADMIN_TOKEN"); formats["token"].ok(token) {
		c.Admin.Token = Secret(token)
	}
	d := newDocument("environment", ".", Env{})
	d.check(c)
	if len(d.errors) > 0 {
		return nil, &Invalid{Problems: d.errors}
	}
	start.Config = c
	return start, nil
}

// share gives each channel its maker's models, and the first one every name besides that is
// no other channel's.
func share(channels []Channel, catalogue map[string]Catalogued) {
	byMaker := map[string]*Channel{}
	for i := range channels {
		byMaker[channels[i].Name] = &channels[i]
		channels[i].Models.Models = map[string]ChannelModel{}
	}
	first := &channels[0].Models
	first.Any = true
	for _, name := range slices.Sorted(maps.Keys(catalogue)) {
		model := catalogue[name]
		own, ok := byMaker[model.Maker]
		if !ok {
			continue
		}
		if model.Dated {
			add(&own.Models.Unlisted, name)
		} else {
			own.Models.Models[name] = ChannelModel{}
		}
		if own != &channels[0] {
			add(&first.Except, name)
		}
	}
}

func add(set *map[string]struct{}, name string) {
	if *set == nil {
		*set = map[string]struct{}{}
	}
	(*set)[name] = struct{}{}
}
