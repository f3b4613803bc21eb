package catalog

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/config"
)

func parse(t *testing.T, text string) *config.Result {
	r := config.Parse([]byte(text), "interlock.yaml", config.Env{Lookup: func(name string) (string, bool) {
		return "value-of-" + strings.ToLower(name), true
	}})
	require.NoError(t, r.Err())
	return r
}

func TestTheBuiltInCatalogueIsSound(t *testing.T) {
	require.GreaterOrEqual(t, len(builtin()), 10)
	names := map[string]bool{}
	for _, e := range builtin() {
		for _, name := range append([]string{e.Name}, e.Also...) {
			require.False(t, names[name], "%s twice", name)
			names[name] = true
		}
		require.NotEmpty(t, e.Maker, e.Name)
		u, err := url.Parse(e.Source)
		require.NoError(t, err, e.Name)
		require.Equal(t, "https", u.Scheme, e.Name)
		_, err = time.Parse(time.DateOnly, e.Date)
		require.NoError(t, err, e.Name)
		require.Positive(t, e.ContextWindow, e.Name)
		require.NotEmpty(t, e.Modalities, e.Name)
		require.NotEmpty(t, e.Capabilities, e.Name)
		for _, c := range e.Capabilities {
			require.Contains(t, capabilities, c, e.Name)
		}
		for _, m := range e.Modalities {
			require.Contains(t, modalities, m, e.Name)
		}
		m := e.model()
		require.True(t, m.Price.InputKnown && m.Price.OutputKnown, e.Name)
		require.LessOrEqual(t, m.Price.CachedInput, m.Price.Input, e.Name)
		require.LessOrEqual(t, e.MaxOutputTokens, e.ContextWindow, e.Name)
		if m.Capabilities.Has(Tools) {
			require.Positive(t, e.MaxOutputTokens, e.Name)
			require.True(t, m.Capabilities.Has(JSONObject|Streaming), e.Name)
		}
	}
	makers := Makers()
	require.Len(t, makers, len(names))
	require.Equal(t, config.Catalogued{Maker: "openai", Dated: true}, makers["gpt-4o-2024-11-20"])
}

func TestTheFileAddsToAndOverridesTheCatalogue(t *testing.T) {
	c := New(parse(t, `
models:
  gpt-5-mini: {context_window: 1000, price: {output: 9}}
  gpt-4o: {capabilities: [streaming], price: {input: 7}}
  gpt-4.1: {price: {input: 1, cached_input: 0.9}}
  gpt-4o-2024-11-20: {max_output_tokens: 5}
  mine: {modalities: [], capabilities: [parallel_tool_calls, json_schema], price: {input: 2}}
`).Config)
	m := c.Model("gpt-5-mini")
	require.Equal(t, 1000, m.ContextWindow)
	require.Equal(t, 128000, m.MaxOutputTokens)
	require.Equal(t, Price{0.25, 0.025, 0.25, 9, true, true}, m.Price)
	require.True(t, m.Reasons())
	require.Equal(t, 1000, c.Model("gpt-5-mini-2025-08-07").ContextWindow)
	require.Equal(t, "gpt-5-mini", c.Model("gpt-5-mini-2025-08-07").Base)

	require.Equal(t, []string{"streaming"}, c.Model("gpt-4o").Capabilities.Words())
	require.Equal(t, []string{"text", "image"}, c.Model("gpt-4o").Modalities.Words())
	require.Equal(t, Price{7, 1.25, 7, 10, true, true}, c.Model("gpt-4o").Price)
	require.Equal(t, 0.9, c.Model("gpt-4.1").Price.CachedInput)
	require.Equal(t, 5, c.Model("gpt-4o-2024-11-20").MaxOutputTokens)
	require.Equal(t, 16384, c.Model("gpt-4o-2024-08-06").MaxOutputTokens)

	mine := c.Model("mine")
	require.Equal(t, []string{"tools", "parallel_tool_calls", "json_object", "json_schema"}, mine.Capabilities.Words())
	require.True(t, mine.ModalitiesDeclared)
	require.Empty(t, mine.Modalities.Words())
	require.Equal(t, Price{2, 2, 2, 0, true, false}, mine.Price)
	require.Empty(t, mine.Source)

	require.Nil(t, c.Model("nobody-knows"))
	require.False(t, c.Model("nobody-knows").Reasons())
	_, known := c.Model("nobody-knows").Cost(Usage{Input: 1})
	require.False(t, known)
}

func TestCost(t *testing.T) {
	p := Price{Input: 2, CachedInput: 0.5, CacheWrite: 2.5, Output: 8, InputKnown: true, OutputKnown: true}
	for _, c := range []struct {
		usage Usage
		want  float64
	}{
		{Usage{}, 0},
		{Usage{Input: 1e6}, 2},
		{Usage{Input: 1e6, Output: 1e6, Reasoning: 5e5}, 10},
		{Usage{Input: 1e6, Cached: 1e6}, 0.5},
		{Usage{Input: 1e6, Cached: 4e5, CacheWrite: 2e5}, 0.8 + 0.2 + 0.5},
		{Usage{Input: 1e6, Cached: 9e6, CacheWrite: 9e6}, 0.5},
		{Usage{Input: -1, Output: -1, Cached: -1}, 0},
	} {
		usd, known := p.Cost(c.usage)
		require.True(t, known)
		require.InDelta(t, c.want, usd, 1e-9, "%+v", c.usage)
	}
	for _, c := range []struct {
		price Price
		usage Usage
		known bool
	}{
		{Price{}, Usage{}, false},
		{Price{Input: 1, InputKnown: true}, Usage{Input: 5}, true},
		{Price{Input: 1, InputKnown: true}, Usage{Input: 5, Output: 1}, false},
		{Price{Output: 1, OutputKnown: true}, Usage{Input: 5, Output: 1}, false},
	} {
		_, known := c.price.Cost(c.usage)
		require.Equal(t, c.known, known, "%+v", c)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Cost(Usage{Input: 10, Output: 10, Cached: 5}) }))
}

// However usage contradicts itself, a cost lies between nothing and the dearest reading.
func TestCostIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Float64Range(0, 100)
		p := Price{
			Input: price.Draw(t, "input"), CachedInput: price.Draw(t, "cached"), CacheWrite: price.Draw(t, "write"),
			Output: price.Draw(t, "output"), InputKnown: true, OutputKnown: true,
		}
		n := rapid.Int64Range(-1e9, 1e9)
		u := Usage{n.Draw(t, "i"), n.Draw(t, "o"), n.Draw(t, "c"), n.Draw(t, "r"), n.Draw(t, "w")}
		usd, known := p.Cost(u)
		most := (float64(max(u.Input, 0))*max(p.Input, p.CachedInput, p.CacheWrite) + float64(max(u.Output, 0))*p.Output) / 1e6
		if !known || usd < 0 || usd > most*1.000001+1e-9 {
			t.Fatalf("%v %v %v", usd, known, most)
		}
	})
}

const aliases = `
providers:
  openai: {adapter: openai, base_url: "http://127.0.0.1:9", auth: none}
  other: {adapter: openai, base_url: "http://127.0.0.1:9", auth: none}
  later: {adapter: native:anthropic, base_url: "http://127.0.0.1:9"}
groups:
  - name: g
    channels:
      - {name: named, provider: other, region: eu, models: {gpt-5-mini: {}, mine: {}, vendor/odd: {}}}
      - {name: any, provider: openai, region: us, models: "*"}
  - name: h
    channels:
      - {name: late, provider: later, credential: ${env:X}, models: {claude-sonnet-5-5: {}}}
keys:
  - {name: all, key: ${env:ALL}, groups: [g, h]}
  - {name: some, key: ${env:SOME}, groups: [g], models: ["gpt-5*", "support*"]}
  - {name: none, key: ${env:NONE}, groups: [h]}
models:
  mine: {context_window: 8000, capabilities: [streaming, tools], modalities: [text], price: {input: 1, output: 1}}
aliases:
  support:
    version: 3
    model: gpt-5-mini
    requires: {modalities: [text, image], streaming: true, tools: true, structured_output: json_schema, context_window_min: 64000, max_output_tokens_min: 4000}
    cross_model_fallback_allowed: true
    substitutes:
      - {model: gpt-4o, price_ceiling: {input: 3, output: 9}}
      - {model: mine, price_ceiling: {input: 3}}
      - {model: vendor/odd, price_ceiling: {output: 1}}
      - {model: gpt-4.1}
  plain: {model: vendor/odd, cross_model_fallback_allowed: true, substitutes: [{model: other/odd}]}
  europe: {model: mine, requires: {regions: [eu]}}
`

func TestContracts(t *testing.T) {
	r := parse(t, aliases)
	c := New(r.Config)
	support := c.Contract("support")
	require.Equal(t, Demand{Text | Image, Streaming | Tools | JSONSchema, 64000, 4000}, support.Demand)
	require.True(t, support.SubstitutionAllowed)
	_, ok := support.Substitute("gpt-4.1")
	require.True(t, ok)
	_, ok = support.Substitute("gpt-5")
	require.False(t, ok)
	require.True(t, support.AllowsRegion("anywhere"))
	require.True(t, c.Contract("europe").AllowsRegion("eu"))
	require.False(t, c.Contract("europe").AllowsRegion(""))
	require.Nil(t, c.Contract("mine"))

	ok, missing := c.Model("gpt-5-mini").Satisfies(support.Demand)
	require.True(t, ok)
	require.Empty(t, missing)
	ok, missing = c.Model("mine").Satisfies(support.Demand)
	require.False(t, ok)
	require.Equal(t, []string{
		"modality image", "json_schema", "context_window of 64000 (has 8000)", "max_output_tokens of 4000 (not declared)",
	}, missing)
	ok, missing = c.Model("vendor/odd").Satisfies(Demand{ContextWindow: 1})
	require.False(t, ok)
	require.Equal(t, []string{"context_window of 1 (not declared)"}, missing)
	ok, _ = c.Model("vendor/odd").Satisfies(Demand{})
	require.True(t, ok)
	m := c.Model("gpt-5-mini")
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Satisfies(support.Demand) }))

	ok, why := c.Model("gpt-4o").Within(support.Substitutes[0].Ceiling)
	require.False(t, ok)
	require.Equal(t, "its output price $10 is above the ceiling $9", why)
	ok, _ = c.Model("vendor/odd").Within(config.PriceCeiling{})
	require.True(t, ok)
	ok, why = c.Model("vendor/odd").Within(config.PriceCeiling{Input: config.Some(1.0)})
	require.False(t, ok)
	require.Equal(t, "its input price is not declared", why)
}

func TestFingerprintsChangeWithTheContract(t *testing.T) {
	base := New(parse(t, aliases).Config).Contract("support").Fingerprint
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{16}$`), base)
	require.Equal(t, base, New(parse(t, aliases).Config).Contract("support").Fingerprint)
	for _, change := range [][2]string{
		{"version: 3", "version: 4"},
		{"streaming: true, ", ""},
		{"64000", "64001"},
		{"[text, image]", "[text]"},
		{"model: gpt-5-mini\n", "model: gpt-5\n"},
	} {
		changed := strings.Replace(aliases, change[0], change[1], 1)
		require.NotEqual(t, aliases, changed)
		require.NotEqual(t, base, New(parse(t, changed).Config).Contract("support").Fingerprint, change[0])
	}
	seen := map[string]bool{}
	for _, f := range []string{
		Implied("m", "chat_completions", Demand{}, false), Implied("m", "chat_completions", Demand{}, true),
		Implied("n", "chat_completions", Demand{}, false), Implied("m", "responses", Demand{}, false),
		Implied("m", "chat_completions", Demand{Capabilities: Tools}, false),
		Implied("m", "chat_completions", Demand{Modalities: Image}, false),
		Implied("m", "chat_completions", Demand{ContextWindow: 1 << 17}, false),
		Implied("m", "chat_completions", Demand{MaxOutputTokens: 1 << 25}, false),
	} {
		require.Len(t, f, 16)
		require.False(t, seen[f])
		seen[f] = true
	}
	require.Equal(t, Implied("m", "x", Demand{}, true), Implied("m", "x", Demand{}, true))
}

func TestCheckFindsWhatCanNeverBe(t *testing.T) {
	r := parse(t, aliases)
	before := len(r.Warnings)
	Check(New(r.Config), r)
	require.NoError(t, r.Err())
	var found []string
	for _, p := range r.Warnings {
		require.Positive(t, p.Line)
		if strings.Contains(p.Message, "never") && !strings.Contains(p.Message, "no channel") {
			found = append(found, p.Key)
		}
	}
	slices.Sort(found)
	require.Equal(t, []string{
		"aliases.support.substitutes[0].price_ceiling",
		"aliases.support.substitutes[1].model",
		"aliases.support.substitutes[2].model",
		"aliases.support.substitutes[2].price_ceiling",
	}, found)
	require.Len(t, r.Warnings, before+4)

	r = parse(t, strings.Replace(aliases, "\n  plain:", "\n  gpt-4o-mini:", 1))
	Check(New(r.Config), r)
	require.ErrorContains(t, r.Err(), "aliases.gpt-4o-mini: an alias may not be named like a model")

	r = parse(t, strings.Replace(aliases, "  europe: {model: mine, requires: {", "  europe: {model: vendor/odd, requires: {tools: true, ", 1))
	Check(New(r.Config), r)
	require.NoError(t, r.Err())
	r.Strict()
	require.ErrorContains(t, r.Err(), "aliases.europe.model: can never answer: it lacks what the alias requires: tools")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(file, []byte("groups: 1\n"), 0o600))
	c, r := Load(file, config.Env{})
	require.Nil(t, c)
	require.Error(t, r.Err())
	require.NoError(t, os.WriteFile(file, []byte("aliases: {gpt-5: {model: gpt-5-mini}}\n"), 0o600))
	c, r = Load(file, config.Env{})
	require.Nil(t, c)
	require.ErrorContains(t, r.Err(), "named like a model")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	c, r = Load(file, config.Env{})
	require.NotNil(t, c)
	require.NoError(t, r.Err())
}
