package flow

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/key"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/decisionlog"
	"github.com/interlock-gateway/interlock/gateway/policy/trial"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/sigv4"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// Parts are what a generation is built from.
type Parts struct {
	Number  uint64
	Config  *config.Config
	Catalog *catalog.Catalog
	Policy  *policy.Revision
	Table   *route.Table
	Keys    *key.Table
	// DecisionLog gets every policy decision, beside the ledger; nil = none.
	DecisionLog *decisionlog.Log
	// Trial is of a candidate beside Policy; nil = there is none.
	Trial *trial.Trial
	// Adapter and Pool give what a channel of a provider that is served needs. Without an
	// adapter, as where its plugin could not be loaded, a channel is no candidate for anything.
	Adapter func(provider string) adapter.Adapter
	// Guard gives the guard that a plugin is; nil where it could not be loaded, or is none.
	Guard func(plugin string) *adapter.Guard
	Pool  func(*route.Channel) *upstream.Pool
}

// Build makes a generation. Nothing changes for requests before Use.
func (gw *Gateway) Build(p Parts) (*Generation, error) {
	g := &Generation{
		Number: p.Number, Config: p.Config, Catalog: p.Catalog, Policy: p.Policy, Table: p.Table, Keys: p.Keys,
		callers: map[*key.Key]*Caller{}, links: map[*route.Channel]*Link{}, budgets: map[string]*Budget{},
		aliases: map[string]*Alias{}, offers: map[string]*offer{}, names: map[string]string{}, decisionLog: p.DecisionLog, trial: p.Trial,
		stream: streaming{
			heartbeat: p.Config.Stream.Heartbeat,
			drain:     p.Config.Stream.AfterDisconnect == config.DisconnectDrain,
		},
	}
	for name, b := range p.Config.Budgets {
		g.budgets[name] = budgetOf(name, &b)
	}
	if err := g.addLinks(&p); err != nil {
		return nil, err
	}
	g.addOffers()
	for name := range p.Config.Aliases {
		a, err := g.aliasOf(p.Catalog.Contract(name))
		if err != nil {
			return nil, fmt.Errorf("aliases.%s: %w", name, err)
		}
		a.guards = guardsOf(p.Config.Aliases[name].Guards, p.Guard)
		g.aliases[name] = a
	}
	for _, k := range p.Keys.All() {
		c := gw.callerOf(g, k)
		c.guards, c.labelsJSON = guardsOf(k.Guards, p.Guard), labelsJSON(k.Labels)
		c.canary = g.trial != nil && g.trial.Decides(k.Name)
		g.callers[k] = c
	}
	return g, nil
}

func budgetOf(name string, b *config.Budget) *Budget {
	return &Budget{
		name: name, deadline: b.Deadline, longest: b.MaxDuration, maxAttempts: b.MaxAttempts,
		maxPerAction: b.MaxAttemptsPerUserAction, maxPerRoute: b.MaxAttemptsPerRoute,
		maxPerGroup: b.MaxAttemptsPerGroup, reserve: b.ReserveForFallback, minUseful: b.MinUseful,
		backoff: recovery.Backoff{Base: b.Backoff.Base, Max: b.Backoff.Max, MaxWait: b.Backoff.MaxWait},
	}
}

func (g *Generation) addLinks(p *Parts) error {
	for _, group := range p.Table.Groups() {
		for i, ch := range group.Channels {
			provider := p.Config.Providers[ch.Provider]
			if !provider.Served() {
				continue
			}
			translates := p.Adapter(ch.Provider)
			if translates == nil {
				continue
			}
			credential := p.Config.Groups[group.Index].Channels[i].Credential.Reveal()
			l := &Link{
				adapter: translates, pool: p.Pool(ch), secrets: secretsOf(&provider, credential),
				askUsage: provider.StreamUsage == config.StreamUsageAsk, group: group.Index, region: ch.Region,
				label: ch.Label(), amplifies: provider.Amplification(),
				asPolicy: policy.Channel{Group: group.Name, Name: ch.Name, Provider: ch.Provider, Region: ch.Region},
			}
			l.headers = headersOf(&provider, credential)
			if guest, ok := translates.(*adapter.Guest); ok {
				l.plugin, l.carries = true, carriedBy(guest.Manifest().ModelCapabilities)
			}
			for _, h := range provider.PassHeaders {
				l.pass = append(l.pass, strings.ToLower(h))
			}
			if provider.Auth.Kind == config.AuthAWS {
				host, _ := l.pool.Addressed("/")
				var err error
				if l.signer, err = sigv4.For(host, ch.Region, credential); err != nil {
					return fmt.Errorf("groups.%s.channels.%s: %w", group.Name, ch.Name, err)
				}
				access, rest, _ := strings.Cut(credential, ":")
				secret, token, _ := strings.Cut(rest, ":")
				l.secrets = append(l.secrets, access, secret)
				if token != "" {
					l.secrets = append(l.secrets, token)
				}
			}
			g.links[ch] = l
		}
	}
	return nil
}

// carriedBy is what an adapter that names these capabilities can translate; nil where it names
// none. Pictures and sound it refuses itself where it has to.
func carriedBy(words []string) *offer {
	if len(words) == 0 {
		return nil
	}
	m := &catalog.Model{CapabilitiesDeclared: true, Capabilities: catalog.ParseCapabilities(words)}
	return &offer{model: m}
}

// secretsOf are what must never show in a message: the credential, and the values of headers
// that are long enough to be one.
func secretsOf(p *config.Provider, credential string) []string {
	var secrets []string
	if credential != "" {
		secrets = append(secrets, credential)
	}
	add := func(headers map[string]config.Secret) {
		for _, v := range headers {
			if len(v.Reveal()) >= 8 {
				secrets = append(secrets, v.Reveal())
			}
		}
	}
	add(p.Headers)
	if gw := p.UpstreamGateway; gw != nil {
		add(gw.Headers)
	}
	return secrets
}

// headersOf is the credential, as the provider wants it, and the provider's own headers.
func headersOf(p *config.Provider, credential string) []upstream.Field {
	var fields []upstream.Field
	if credential != "" {
		switch p.Auth.Kind {
		case config.AuthBearer:
			fields = append(fields, upstream.Field{Name: "Authorization", Value: "Bearer " + credential})
		case config.AuthHeader:
			fields = append(fields, upstream.Field{Name: p.Auth.Name, Value: credential})
		}
	}
	add := func(headers map[string]config.Secret) {
		names := make([]string, 0, len(headers))
		for n := range headers {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			fields = append(fields, upstream.Field{Name: n, Value: headers[n].Reveal()})
		}
	}
	add(p.Headers)
	if gw := p.UpstreamGateway; gw != nil {
		add(gw.Headers)
		fields = append(fields, gatewayHeaders[gw.Kind]...)
	}
	return fields
}

// gatewayHeaders tell a gateway that is used as a provider not to ask again by itself.
var gatewayHeaders = map[config.GatewayKind][]upstream.Field{
	config.GatewayLiteLLM: {{Name: "x-litellm-num-retries", Value: "0"}},
	config.GatewayPortkey: {{Name: "x-portkey-config", Value: `{"retry":{"attempts":0}}`}},
	config.GatewayEnvoy:   {{Name: "x-envoy-max-retries", Value: "0"}},
}

// addOffers resolves every model that can be named in advance.
func (g *Generation) addOffers() {
	add := func(name string) {
		if _, known := g.names[name]; known {
			return
		}
		g.names[name] = name
		m := g.Catalog.Model(name)
		o := &offer{model: m, asPolicy: policy.Candidate{Model: name, Price: priceOf(m), Evidence: policy.NoEvidence}}
		if m != nil {
			o.asPolicy.Capabilities = policy.ListOf(m.Capabilities.Words()...)
		}
		g.offers[name] = o
	}
	for _, group := range g.Table.Groups() {
		for _, name := range group.Models() {
			add(name)
		}
	}
	for name := range g.Config.Models {
		add(name)
	}
	for _, m := range g.Catalog.Names() {
		add(m)
	}
	for _, a := range g.Config.Aliases {
		add(a.Model)
		for _, s := range a.Substitutes {
			add(s.Model)
		}
	}
}

func (g *Generation) aliasOf(c *catalog.Contract) (*Alias, error) {
	own := g.Catalog.Model(c.Model)
	gates, err := policy.ObjectOf(gatesOf(&c.Gates))
	if err != nil {
		return nil, err
	}
	requires, err := policy.ObjectOf(requiresOf(&c.Requires))
	if err != nil {
		return nil, err
	}
	a := &Alias{
		contract: c, buffered: c.Release == config.ReleaseBuffered,
		requested: policy.Model{Name: c.Model, Price: priceOf(own)},
		asPolicy:  policy.Alias{Name: c.Alias, Version: c.Version, Requires: requires, QualityGates: gates},
	}
	for _, s := range c.Substitutes {
		m := g.Catalog.Model(s.Model)
		within, _ := m.Within(s.Ceiling)
		seen := g.offer(s.Model).asPolicy
		seen.ContextWindow = policy.CompareWindows(windowOf(m), windowOf(own))
		a.substitutes = append(a.substitutes, substitute{model: s.Model, priced: within, offer: seen})
	}
	return a, nil
}

func windowOf(m *catalog.Model) int {
	if m == nil {
		return 0
	}
	return m.ContextWindow
}

// requiresOf is an alias's demands as policies see them: without what it does not demand.
func requiresOf(r *config.Requires) map[string]any {
	o := map[string]any{}
	put := func(name string, set bool, v any) {
		if set {
			o[name] = v
		}
	}
	put("modalities", len(r.Modalities) > 0, r.Modalities)
	put("streaming", r.Streaming, true)
	put("tools", r.Tools, true)
	put("parallel_tool_calls", r.ParallelToolCalls, true)
	put("structured_output", r.StructuredOutput != "" && r.StructuredOutput != config.StructuredNone, r.StructuredOutput)
	put("context_window_min", r.ContextWindowMin > 0, r.ContextWindowMin)
	put("max_output_tokens_min", r.MaxOutputTokensMin > 0, r.MaxOutputTokensMin)
	put("regions", len(r.Regions) > 0, r.Regions)
	put("evidence", r.Evidence != "" && r.Evidence != config.EvidenceNone, r.Evidence)
	return o
}

func gatesOf(q *config.QualityGates) map[string]any {
	o := map[string]any{}
	for name, v := range map[string]config.Opt[float64]{
		"task_success_rate_min": q.TaskSuccessRateMin,
		"schema_valid_rate_min": q.SchemaValidRateMin,
		"safety_pass_rate_min":  q.SafetyPassRateMin,
	} {
		if v.Set {
			o[name] = v.Value
		}
	}
	return o
}

// callerOf resolves what a key may use. Its requests per minute are counted over generations.
func (gw *Gateway) callerOf(g *Generation, k *key.Key) *Caller {
	c := &Caller{gen: g, key: k, labels: policy.LabelsOf(k.Labels), rpm: gw.window(k)}
	for _, name := range k.Groups {
		if group := g.Table.Group(name); group != nil && !slices.Contains(c.groups, group) {
			c.groups = append(c.groups, group)
		}
	}
	return c
}

func (gw *Gateway) window(k *key.Key) *limit.Window {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	w := gw.windows[k.Name]
	if w == nil {
		w = limit.NewWindow(k.RPM)
		gw.windows[k.Name] = w
	}
	w.SetLimit(k.RPM)
	return w
}
