package config

import (
	"slices"
	"strings"
)

func (d *document) checkProviders(c *Config) {
	for _, name := range keysOf(c.Providers) {
		p, path := c.Providers[name], Join("providers", name)
		if p.Adapter.Kind == AdapterPlugin && !slices.Contains(pluginNames(c), p.Adapter.Name) {
			d.dangling(path+".adapter", "plugin", pluginNames(c))
		}
		if !d.isBroken(path+".adapter") && p.Auth.Soon() {
			d.warn(path+".auth", "not in force: this version cannot sign with %s yet; channels of this provider serve nothing", p.Auth.Kind)
		}
		d.authorities(path+".ca_file", p.CAFile)
		d.pair(path, "client_cert", p.ClientCert, "client_key", p.ClientKey)
		d.checkHeaders(path, &p)
	}
}

// ownHeaders are the gateway's to set: no provider adds them.
var ownHeaders = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
	"accept-encoding", "x-client-request-id",
}

// privateHeaders of a caller never go upstream.
var privateHeaders = append([]string{
	"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "idempotency-key",
}, ownHeaders...)

func (d *document) checkHeaders(path string, p *Provider) {
	for _, h := range keysOf(p.Headers) {
		if slices.Contains(ownHeaders, strings.ToLower(h)) {
			d.fail(Join(path+".headers", h), "this header is the gateway's own to set")
		}
	}
	names := unique{d: d}
	for i, h := range p.PassHeaders {
		low := strings.ToLower(h)
		names.add(low, at(path+".pass_headers", i))
		if slices.Contains(privateHeaders, low) || strings.HasPrefix(low, "interlock-") {
			d.fail(at(path+".pass_headers", i), "a caller's %s never goes upstream", low)
		}
	}
	if p.UpstreamGateway == nil {
		return
	}
	for _, h := range keysOf(p.UpstreamGateway.Headers) {
		if slices.Contains(ownHeaders, strings.ToLower(h)) {
			d.fail(Join(path+".upstream_gateway.headers", h), "this header is the gateway's own to set")
		}
	}
}

func (d *document) checkGroups(c *Config) {
	groups := unique{d: d}
	for i := range c.Groups {
		g, path := &c.Groups[i], at("groups", i)
		groups.add(g.Name, path+".name")
		if g.Strategy == LeastLatency || g.Strategy == LeastCost {
			d.warn(path+".strategy", "not in force: this version does not have %s yet; priority holds instead", g.Strategy)
		}
		if len(g.Channels) == 0 {
			d.warn(path+".channels", "a group without a channel serves nothing")
		}
		channels := unique{d: d}
		for j := range g.Channels {
			ch := &g.Channels[j]
			channels.add(ch.Name, at(path+".channels", j)+".name")
			d.checkChannel(c, ch, at(path+".channels", j))
		}
	}
}

func (d *document) checkChannel(c *Config, ch *Channel, path string) {
	if len(ch.Models.Models) == 0 && !ch.Models.Any {
		d.warn(path+".models", "a channel without a model serves nothing")
	}
	if ch.Provider == "" {
		return
	}
	p, ok := c.Providers[ch.Provider]
	if !ok {
		d.dangling(path+".provider", "provider", keysOf(c.Providers))
		return
	}
	switch {
	case p.Auth.Kind == AuthNone && ch.Credential != "":
		d.warn(path+".credential", "never sent: the provider's auth is none")
	case p.Auth.Kind != AuthNone && !p.Auth.Soon() && ch.Credential == "" && !d.isBroken(path+".credential"):
		d.warn(path, "no credential, though the provider's auth is %s; auth: none says that none is needed", p.Auth)
	}
}

func (d *document) checkKeys(c *Config) {
	names, digests := unique{d: d}, unique{d: d, secret: true}
	for i := range c.Keys {
		k, path := &c.Keys[i], at("keys", i)
		names.add(k.Name, path+".name")
		d.checkKeyItself(k, path, &digests)
		d.checkKeyGroups(c, k, path)
		if len(k.Models) == 0 {
			d.warn(path+".models", "a key without a model may ask for nothing; left out, it may ask for every one")
		}
		d.references(path+".budget", "budget", []string{k.Budget}, c.Budgets)
		d.references(path+".budgets", "budget", k.Budgets, c.Budgets)
		d.checkGuards(c, k.Guards, path+".guards")
	}
}

func (d *document) checkKeyItself(k *Key, path string, digests *unique) {
	if d.isBroken(path+".key") || d.isBroken(path+".key_sha256") {
		return
	}
	place := path + ".key"
	switch {
	case k.Key != "" && k.KeySHA256 != "":
		d.fail(path+".key_sha256", "key or key_sha256, not both")
		return
	case k.KeySHA256 != "":
		place = path + ".key_sha256"
	case k.Key == "":
		d.fail(path, "key or key_sha256 is required")
		return
	}
	digest := k.Digest()
	digests.add(string(digest[:]), place)
}

func (d *document) checkKeyGroups(c *Config, k *Key, path string) {
	list, place := k.Groups, path+".groups"
	switch {
	case d.isBroken(path+".groups") || d.isBroken(path+".smart"):
		return
	case k.Smart != nil && len(k.Groups) > 0:
		d.fail(path+".smart", "groups or smart, not both")
	case k.Smart != nil:
		list, place = k.Smart.Groups, path+".smart.groups"
	case len(k.Groups) == 0:
		d.fail(path, "groups is required, at least one")
	}
	names := unique{d: d}
	for i, name := range list {
		names.add(name, at(place, i))
		if _, ok := c.Group(name); !ok && name != "" {
			d.dangling(at(place, i), "group", groupNames(c))
		}
	}
}

func groupNames(c *Config) (names []string) {
	for _, g := range c.Groups {
		if g.Name != "" {
			names = append(names, g.Name)
		}
	}
	return names
}

// references checks names against a mapping; path is the key of a list, or of the one name.
func (d *document) references(path, what string, names []string, known map[string]Budget) {
	seen := unique{d: d}
	for i, name := range names {
		place := path
		if strings.HasSuffix(path, "s") {
			place = at(path, i)
			seen.add(name, place)
		}
		if _, ok := known[name]; !ok && name != "" {
			d.dangling(place, what, keysOf(known))
		}
	}
}
