package config

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

var someModels = map[string]Catalogued{
	"gpt-5": {Maker: "openai"}, "gpt-5-2025-08-07": {Maker: "openai", Dated: true},
	"mistral-small-latest": {Maker: "mistral"}, "claude-sonnet-5-5": {Maker: "anthropic"},
}

func TestStartFromOneVariable(t *testing.T) {
	s, err := FromEnv(environment(map[string]string{"OPENAI_API_KEY": " sk-" + canary + "\n", "INTERLOCK_ADMIN_TOKEN": "t"}), someModels, nil)
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	c := s.Config
	require.Equal(t, "127.0.0.1:8080", c.Listen.Address)
	require.Equal(t, "sqlite:interlock.db", c.Storage.URL)
	require.Equal(t, "data", c.DataDir)
	require.Equal(t, Secret("t"), c.Admin.Token)
	require.Contains(t, c.Budgets, Interactive)
	require.Len(t, c.Groups, 1)
	require.Equal(t, "default", c.Groups[0].Name)
	ch := c.Groups[0].Channels[0]
	require.Equal(t, Secret("sk-"+canary), ch.Credential)
	require.Equal(t, 64, ch.MaxConcurrency)
	require.True(t, ch.Models.Any)
	p := c.Providers[ch.Provider]
	require.True(t, p.Served())
	require.Equal(t, "https://api.openai.com/v1", p.BaseURL)
	for _, model := range []string{"gpt-5", "gpt-5-2025-08-07", "anything", "claude-sonnet-5-5"} {
		_, ok := ch.Models.Lookup(model)
		require.True(t, ok, model)
	}
	require.Len(t, c.Keys, 1)
	require.True(t, formats["key"].ok(s.Key.Reveal()))
	require.Equal(t, s.Key, c.Keys[0].Key)
	require.Equal(t, []string{"default"}, c.Keys[0].Groups)
	other, err := FromEnv(environment(map[string]string{"OPENAI_API_KEY": "sk"}), nil, nil)
	require.NoError(t, err)
	require.NotEqual(t, s.Key, other.Key)
}

func TestPluginsOfTheEnvironment(t *testing.T) {
	s, err := FromEnv(environment(map[string]string{"ANTHROPIC_API_KEY": canary, "OPENAI_API_KEY": "o"}), someModels, []string{"anthropic"})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	require.Len(t, s.Config.Plugins, 1)
	require.Equal(t, "builtin:anthropic", s.Config.Plugins[0].Source)
	require.Equal(t, Size(64<<20), s.Config.Plugins[0].Limits.Memory)
	require.Equal(t, "plugin:anthropic", s.Config.Providers["anthropic"].Adapter.String())
	require.Equal(t, "header:x-api-key", s.Config.Providers["anthropic"].Auth.String())
}

func TestACataloguedModelGoesToItsMaker(t *testing.T) {
	s, err := FromEnv(environment(map[string]string{
		"MISTRAL_API_KEY": "m", "OPENAI_API_KEY": "o", "GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "DEEPSEEK_API_KEY": "two words",
	}), someModels, nil)
	require.NoError(t, err)
	require.Len(t, s.Warnings, 2)
	require.Contains(t, s.Warnings[0], "ANTHROPIC_API_KEY is not used")
	require.Contains(t, s.Warnings[1], "DEEPSEEK_API_KEY is not used")
	require.NotContains(t, s.Warnings[1], "two words")
	serves := map[string][]string{}
	for _, model := range []string{"gpt-5", "gpt-5-2025-08-07", "mistral-small-latest", "claude-sonnet-5-5", "unheard-of"} {
		for _, ch := range s.Config.Groups[0].Channels {
			if _, ok := ch.Models.Lookup(model); ok {
				serves[model] = append(serves[model], ch.Name)
			}
		}
	}
	require.Equal(t, map[string][]string{
		"gpt-5": {"openai"}, "gpt-5-2025-08-07": {"openai"}, "mistral-small-latest": {"mistral"},
		"claude-sonnet-5-5": {"openai"}, "unheard-of": {"openai"},
	}, serves)
}

func TestStartFromNothing(t *testing.T) {
	_, err := FromEnv(environment(map[string]string{"GEMINI_API_KEY": canary, "XAI_API_KEY": ""}), nil, nil)
	var none *NoProviderError
	require.True(t, errors.As(err, &none))
	require.Contains(t, none.Variables, "OPENAI_API_KEY")
	require.Contains(t, none.Variables, "XAI_API_KEY")
	require.NotContains(t, none.Variables, "GEMINI_API_KEY")
	require.ErrorContains(t, err, "GEMINI_API_KEY")
	require.ErrorContains(t, err, "--config")
	require.NotContains(t, err.Error(), canary)
}
