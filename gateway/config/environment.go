package config

import (
	"crypto/rand"
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

// keyHeaders are those in which a maker wants its key, where that is not a bearer token.
var keyHeaders = map[string]string{"anthropic": "x-api-key", "gemini": "x-goog-api-key"}

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

// available says whether the variable's adapter is native or among the plugins that are there.
func (k known) available(builtin []string) bool {
	return k.adapter == native || slices.Contains(builtin, k.adapter.Name)
}

// unusable says why a variable's value makes no channel; "" where it does, or is not set.
func (k known) unusable(value string, builtin []string) string {
	switch {
	case value == "":
		return ""
	case !k.available(builtin):
		return "this binary does not have the adapter " + k.adapter.Name
	case !formats["token"].ok(value):
		return "its value has characters that no API key has"
	default:
		return ""
	}
}

// channel makes the variable's provider and channel; what the channel serves is to be added.
func (k known) channel(credential Secret) (Provider, Channel) {
	var p Provider
	fill(&p)
	p.Adapter, p.BaseURL = k.adapter, k.baseURL
	if header := keyHeaders[k.maker]; header != "" {
		p.Auth = Auth{Kind: AuthHeader, Name: header}
	}
	var ch Channel
	fill(&ch)
	ch.Name, ch.Provider, ch.Credential = k.maker, k.maker, credential
	return p, ch
}

// usable lists the variables from which a start can be made.
func usable(builtin []string) (list []string) {
	for _, k := range variables {
		if k.available(builtin) {
			list = append(list, k.variable)
		}
	}
	return list
}

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
// INTERLOCK_ADMIN_TOKEN, if set, is the admin's token. builtin names the plugins that come with
// the gateway. The error is a *NoProviderError.
func FromEnv(lookup func(name string) (string, bool), catalogue map[string]Catalogued, builtin []string) (*Start, error) {
	start := &Start{Key: Secret("ik-" + strings.ToLower(rand.Text()))}
	c := new(Config)
	fill(c)
	c.Watch = false
	c.Providers = map[string]Provider{}
	var channels []Channel
	for _, k := range variables {
		value, _ := lookup(k.variable)
		value = strings.TrimSpace(value)
		if why := k.unusable(value, builtin); value == "" || why != "" {
			if why != "" {
				start.Warnings = append(start.Warnings, k.variable+" is not used: "+why)
			}
			continue
		}
		p, ch := k.channel(Secret(value))
		c.Providers[k.maker] = p
		if p.Adapter.Kind == AdapterPlugin {
			var use Plugin
			fill(&use)
			use.Name, use.Source = p.Adapter.Name, "builtin:"+p.Adapter.Name
			c.Plugins = append(c.Plugins, use)
		}
		channels = append(channels, ch)
	}
	if len(channels) == 0 {
		return nil, &NoProviderError{Variables: usable(builtin), Unusable: start.Warnings}
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
