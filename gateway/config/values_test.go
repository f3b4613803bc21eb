package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func load(t *testing.T, file string) *Config {
	r := Load("testdata/"+file, corpusEnv)
	require.NoError(t, r.Err())
	return r.Config
}

// The reference shows the defaults: a file that gives them all equals one that gives none.
func TestReferenceShowsTheDefaults(t *testing.T) {
	given, none := load(t, "reference.good.yaml"), load(t, "empty.good.yaml")
	require.Equal(t, none.Listen, given.Listen)
	require.Equal(t, none.Admin.Listen, given.Admin.Listen)
	require.Equal(t, none.Storage, given.Storage)
	require.Equal(t, none.DataDir, given.DataDir)
	require.Equal(t, none.SharedState, given.SharedState)
	require.Equal(t, none.Policy.Timeout, given.Policy.Timeout)
	require.Equal(t, none.Policy.DecisionLog, given.Policy.DecisionLog)
	require.Equal(t, none.Policy.Candidate, given.Policy.Candidate)
	require.Equal(t, none.Budgets, given.Budgets)
	require.Equal(t, none.Breaker, given.Breaker)
	require.Equal(t, none.Stream, given.Stream)
	require.Equal(t, none.RetryBudget, given.RetryBudget)
	require.Equal(t, none.Affinity.TTL, given.Affinity.TTL)
	require.Equal(t, none.Log, given.Log)
	require.Equal(t, none.Watch, given.Watch)

	var channel Channel
	fill(&channel)
	require.Equal(t, channel.Priority, given.Groups[0].Channels[0].Priority)
	require.Equal(t, channel.Queue, given.Groups[0].Channels[0].Queue)
	require.Equal(t, given.Groups[0].Channels[0].Priority, given.Groups[1].Channels[0].Priority)

	// A channel's clocks are the defaults, but set ones hold where others would.
	chat := Call{Stream: true, Deadline: 10 * time.Minute, Reserve: 2 * time.Minute}
	require.Equal(t, given.Groups[1].Channels[0].Timeouts.Resolve(Timeouts{}, chat),
		given.Groups[0].Channels[0].Timeouts.Resolve(Timeouts{}, chat))
}

// Each default by its value, as the reference states it.
func TestDefaultsByValue(t *testing.T) {
	c := load(t, "empty.good.yaml")
	want := &Config{
		Version: 1, Watch: true, DataDir: "testdata/data",
		Listen: Listen{
			Address: "127.0.0.1:8080", MaxRequestBody: 64 << 20, MaxInflightBody: SizeShare{Percent: 25},
			ReadHeaderTimeout: 10 * time.Second, ReadBodyTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
			HalfClose: HalfCloseLeave, DrainDelay: 5 * time.Second, DrainTimeout: 10 * time.Minute,
		},
		Admin: Admin{Listen: "127.0.0.1:8081"},
		Storage: Storage{
			URL:    "sqlite:testdata/interlock.db",
			Ledger: Ledger{Durability: GroupCommit, Retention: 720 * time.Hour, MaxSize: 20 << 30},
		},
		Policy: Policy{Timeout: 250 * time.Millisecond, Candidate: Candidate{Mode: Shadow}},
		Budgets: map[string]Budget{Interactive: {
			Deadline: 10 * time.Minute, MaxDuration: 30 * time.Minute, MaxAttempts: 4, MaxAttemptsPerUserAction: 6,
			MaxAttemptsPerRoute: 2, MaxAttemptsPerGroup: 4, ReserveForFallback: Share{Percent: 20},
			MinUseful: 500 * time.Millisecond,
			Backoff:   Backoff{Base: 200 * time.Millisecond, Max: 2 * time.Second, MaxWait: 20 * time.Second},
		}},
		Breaker: Breaker{
			Window: time.Minute, MinRequests: 10, FailureRatio: 0.5, ConsecutiveFailures: 5,
			OpenFor: 15 * time.Second, MaxOpen: 2 * time.Minute, HalfOpenProbes: 1, Ramp: 10 * time.Second,
		},
		Stream:      Stream{Heartbeat: 50 * time.Second, MaxEvent: 32 << 20, AfterDisconnect: DisconnectAbort},
		RetryBudget: RetryBudget{Ratio: 0.2, Min: 10, Window: 10 * time.Second},
		Affinity:    Affinity{TTL: time.Hour},
		Log:         Log{Level: LogInfo, Format: LogJSON},
	}
	require.Equal(t, want, c)

	c = load(t, "minimal.good.yaml")
	require.Equal(t, []Group{{Name: "primary", Strategy: Priority, Channels: []Channel{{
		Name: "openai", Provider: "openai", Credential: Secret("sk-openai-" + canary), Priority: 10, Weight: 1,
		MaxConcurrency: 64, Queue: Queue{Max: 256, Wait: 2 * time.Second}, Models: Served{Any: true},
	}}}}, c.Groups)
	require.Equal(t, map[string]Provider{"openai": {
		Adapter: AdapterRef{AdapterNative, "openai"}, BaseURL: "https://api.openai.com/v1",
		Auth: Auth{Kind: AuthBearer}, StreamUsage: StreamUsageAsk,
	}}, c.Providers)
	require.Equal(t, []Key{{
		Name: "web-app", Key: Secret("web-" + canary), Groups: []string{"primary"}, Models: []Glob{{"*"}},
		Budget: Interactive, Spend: Spend{Per: "month"},
	}}, c.Keys)
	require.Equal(t, "primary/openai", c.Groups[0].Channels[0].AccountName("primary"))

	c = load(t, "reference.good.yaml")
	require.Equal(t, Alias{
		Version: 3, Model: "gpt-5-mini", Budget: Interactive, SameModelFailoverFirst: true,
		CrossModelFallbackAllowed: true, Release: ReleaseStream,
		Requires: Requires{
			Modalities: []Modality{ModalityText}, Streaming: true, Tools: true,
			StructuredOutput: StructuredJSONSchema, ContextWindowMin: 64000, MaxOutputTokensMin: 4000,
			Regions: []string{"eu"}, Evidence: EvidenceRequired,
		},
		QualityGates: QualityGates{TaskSuccessRateMin: Some(0.94), SchemaValidRateMin: Some(0.995)},
		Substitutes:  []Substitute{{Model: "claude-sonnet-4-5", PriceCeiling: PriceCeiling{Input: Some(3.0), Output: Some(15.0)}}},
	}, withoutEmpty(c.Aliases["support-agent-v3"]))
	require.Equal(t, "acme-openai", c.Groups[0].Channels[0].AccountName("primary"))
	require.Equal(t, PluginLimits{Memory: 64 << 20, CallTimeout: 100 * time.Millisecond}, c.Plugins[0].Limits)
}

func withoutEmpty(a Alias) Alias {
	if len(a.Guards) == 0 {
		a.Guards = nil
	}
	return a
}

func TestPartialMappingsAreFilledKeyByKey(t *testing.T) {
	c := load(t, "partial.good.yaml")
	require.Equal(t, "[::1]:9000", c.Listen.Address)
	require.Equal(t, Size(64<<20), c.Listen.MaxRequestBody)
	require.Equal(t, Ledger{GroupCommit, 24 * time.Hour, 20 << 30}, c.Storage.Ledger)
	require.Equal(t, LogInfo, c.Log.Level)
	require.Equal(t, 60, c.Groups[0].RPM)
	ch := c.Groups[0].Channels[0]
	require.Equal(t, Queue{Max: 5, Wait: 2 * time.Second}, ch.Queue)
	require.Equal(t, 2, ch.Weight)
	require.True(t, ch.Models.Any)
	require.Len(t, ch.Models.Models, 2)
	batch := c.Budgets["batch"]
	require.Equal(t, 2, batch.MaxAttempts)
	require.Equal(t, 2, batch.MaxAttemptsPerRoute)
	require.Equal(t, 12*time.Minute, batch.Reserve())
	require.Equal(t, 4, c.Budgets[Interactive].MaxAttempts)
	require.Equal(t, time.Minute, c.Breaker.OpenFor)
	require.Equal(t, 2*time.Minute, c.Breaker.MaxOpen)
	require.Zero(t, c.Stream.Heartbeat)
	require.True(t, c.Keys[0].Allows("gpt-5"))
	require.True(t, c.Keys[0].Allows("llama3:8b"))
	require.False(t, c.Keys[0].Allows("llama33:8b"))
	require.Equal(t, byte(0x3c), c.Keys[0].digest()[0])
}

func (k Key) digest() [32]byte { return k.Digest() }

func TestClocksDependOnTheCall(t *testing.T) {
	set := func(d time.Duration) Opt[time.Duration] { return Some(d) }
	const s = time.Second
	for name, c := range map[string]struct {
		channel, model Timeouts
		call           Call
		want           Clocks
	}{
		"a stream":                {call: Call{Stream: true, Deadline: 600 * s, Reserve: 120 * s}, want: Clocks{3 * s, 60 * s, 120 * s, 60 * s}},
		"a stream of a reasoner":  {call: Call{Stream: true, Reasoning: true}, want: Clocks{3 * s, 300 * s, 300 * s, 300 * s}},
		"no stream":               {call: Call{Deadline: 600 * s, Reserve: 120 * s}, want: Clocks{3 * s, 480 * s, 480 * s, 60 * s}},
		"no stream of a reasoner": {call: Call{Reasoning: true, Deadline: 600 * s, Reserve: 120 * s}, want: Clocks{3 * s, 480 * s, 480 * s, 300 * s}},
		"no stream, set":          {channel: Timeouts{FirstByte: set(9 * s)}, call: Call{Deadline: 600 * s}, want: Clocks{3 * s, 9 * s, 600 * s, 60 * s}},
		"a model's before a channel's": {
			channel: Timeouts{Connect: set(1 * s), Idle: set(2 * s)}, model: Timeouts{Idle: set(4 * s)},
			call: Call{Stream: true, Reasoning: true}, want: Clocks{1 * s, 300 * s, 300 * s, 4 * s},
		},
	} {
		require.Equal(t, c.want, c.channel.Resolve(c.model, c.call), name)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	for _, file := range []string{"reference.good.yaml", "unwise.good.yaml"} {
		c := load(t, file)
		require.True(t, strings.HasPrefix(c.Groups[0].Channels[0].Credential.Reveal(), "sk-"))
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			require.NotContains(t, fmt.Sprintf(format, c), canary, format)
			require.NotContains(t, fmt.Sprintf(format, *c), canary, format)
			require.NotContains(t, fmt.Sprintf(format, c.Groups), canary, format)
			require.NotContains(t, fmt.Sprintf(format, c.Plugins), canary, format)
		}
		b, err := json.Marshal(c)
		require.NoError(t, err)
		require.NotContains(t, string(b), canary)
		b, err = yaml.Marshal(c)
		require.NoError(t, err)
		require.NotContains(t, string(b), canary)
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "credential", c.Groups[0].Channels[0].Credential)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "config", c, "credential", c.Groups[0].Channels[0].Credential)
		require.NotContains(t, out.String(), canary)
	}
}

func TestADocumentIsHandedOnAsJSON(t *testing.T) {
	c := load(t, "unwise.good.yaml")
	require.JSONEq(t, `{"level": 3, "secret": "web-`+canary+`", "list": ["a", 1.5, true, null]}`, c.Plugins[0].Config.JSON.Reveal())
}

func TestFingerprintsTellSecretsApart(t *testing.T) {
	require.Empty(t, Fingerprint(""))
	require.Len(t, Fingerprint("a"), 16)
	require.NotEqual(t, Fingerprint("a"), Fingerprint("b"))
	require.Equal(t, Fingerprint("a"), Fingerprint(Secret("a")))
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1B": 1, "64KiB": 64 << 10, "1.5MiB": 3 << 19, "20GiB": 20 << 30, "1TiB": 1 << 40, "10MB": 10_000_000,
	} {
		var s Size
		require.NoError(t, s.parse(text), text)
		require.Equal(t, want, s, text)
		var again Size
		require.NoError(t, again.parse(s.String()))
		require.Equal(t, s, again)
	}
	for _, text := range []string{"", "1", "-1KiB", "KiB", "1 KiB", "1kib", "999999999TiB", "1e3B", "0x1B"} {
		var s Size
		require.Error(t, s.parse(text), text)
	}
}

func TestShares(t *testing.T) {
	var s Share
	require.NoError(t, s.parse("20%"))
	require.Equal(t, 2*time.Minute, s.Of(10*time.Minute))
	require.NoError(t, s.parse("7s"))
	require.Equal(t, 7*time.Second, s.Of(10*time.Minute))
	require.Error(t, s.parse("101%"))
	require.Error(t, s.parse("x"))
	var z SizeShare
	require.NoError(t, z.parse("25%"))
	require.Equal(t, int64(256), z.Of(1024))
	require.NoError(t, z.parse("1KiB"))
	require.Equal(t, int64(1024), z.Of(1))
	require.Error(t, z.parse("0%"))
	require.Error(t, z.parse("0"))
}

func TestReferencesToAdaptersAndAuth(t *testing.T) {
	for text, want := range map[string]AdapterRef{
		"openai": {AdapterNative, "openai"}, "native:openai": {AdapterNative, "openai"},
		"native:anthropic": {AdapterNative, "anthropic"}, "plugin:x": {AdapterPlugin, "x"},
	} {
		var a AdapterRef
		require.NoError(t, a.parse(text))
		require.Equal(t, want, a)
	}
	for text, want := range map[string]Auth{
		"bearer": {Kind: AuthBearer}, "header:x-api-key": {AuthHeader, "x-api-key"}, "query:key": {AuthQuery, "key"}, "none": {Kind: AuthNone},
	} {
		var a Auth
		require.NoError(t, a.parse(text))
		require.Equal(t, want, a)
		require.Equal(t, text, a.String())
	}
	for _, text := range []string{"", "header", "header:", "header:a b", "bearer:x", "query:a&b"} {
		require.Error(t, new(Auth).parse(text), text)
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "a/b", true},
		{"gpt-*", "gpt-5", true},
		{"gpt-*", "gp", false},
		{"*-mini", "gpt-5-mini", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false},
		{"?", "a", true},
		{"?", "", false},
		{"??", "a", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"**a**", "bab", true},
		{`\[a\]`, "[a]", true},
		{`\{a\}`, "{a}", true},
	} {
		g, err := NewGlob(c.pattern)
		require.NoError(t, err)
		require.Equal(t, c.want, g.Match(c.name), "%s %s", c.pattern, c.name)
	}
	for _, bad := range []string{"", `a\`, "a\nb", strings.Repeat("a", 257), "[", "]", "[a", "[a]", "gpt-{4,5}", `\[a]`} {
		_, err := NewGlob(bad)
		require.Error(t, err, bad)
	}
	g, err := NewGlob(strings.Repeat("*a", 100) + "b")
	require.NoError(t, err)
	require.False(t, g.Match(strings.Repeat("a", 10_000)), "in bounded time")
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = g.Match("aaaaaaaaaaaa") }))
}

// A glob agrees with the plain definition of what it means.
func TestGlobsAgreeWithTheirDefinition(t *testing.T) {
	var slow func(p, s string) bool
	slow = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return slow(p[1:], s) || s != "" && slow(p, s[1:])
		case s == "":
			return false
		case p[0] == '\\':
			return p[1] == s[0] && slow(p[2:], s[1:])
		default:
			return (p[0] == '?' || p[0] == s[0]) && slow(p[1:], s[1:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`([ab*?]|\\[ab*?\\]){1,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab*?\\]{0,8}`).Draw(t, "name")
		g, err := NewGlob(p)
		if err != nil {
			t.Fatal(err)
		}
		if g.Match(s) != slow(p, s) {
			t.Fatalf("%q %q: %v", p, s, g.Match(s))
		}
	})
}

// Everything that the types hold can be told apart.
func TestDigestsSeeEveryField(t *testing.T) {
	base := load(t, "reference.good.yaml")
	seen := map[string]string{Digest(base): "unchanged"}
	require.Equal(t, Digest(base), Digest(load(t, "reference.good.yaml")))
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		change := func() {
			d := Digest(base)
			require.Empty(t, seen[d], path)
			seen[d] = path
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i), path+"."+v.Type().Field(i).Name)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
			}
		case reflect.String:
			old := v.String()
			v.SetString(old + "x" + path)
			change()
			v.SetString(old)
		case reflect.Bool:
			v.SetBool(!v.Bool())
			change()
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
			change()
			v.SetInt(v.Int() - 1)
		case reflect.Float64:
			old := v.Float()
			v.SetFloat(old + 1)
			change()
			v.SetFloat(old)
		}
	}
	walk(reflect.ValueOf(base).Elem(), "")
	require.Greater(t, len(seen), 60)
}

func TestDiffNamesWhatNeedsARestart(t *testing.T) {
	before := load(t, "reference.good.yaml")
	require.Equal(t, Change{}, Diff(before, load(t, "reference.good.yaml")))
	after := load(t, "reference.good.yaml")
	after.Admin.Token = "another"
	after.Groups[0].Channels[0].Credential = "another"
	require.Equal(t, Change{Sections: []string{"admin", "groups"}}, Diff(before, after))
	after.Listen.TLS.KeyFile = "x"
	after.Listen.Address = "127.0.0.1:1"
	after.Admin.Listen = "127.0.0.1:2"
	after.Storage.Ledger.MaxSize = 1
	require.Equal(t, Change{
		Sections: []string{"listen", "admin", "storage", "groups"},
		Restart:  []string{"listen.address", "listen.tls.key_file", "admin.listen", "storage.ledger.max_size"},
	}, Diff(before, after))
}
