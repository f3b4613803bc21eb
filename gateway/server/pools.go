package server

import (
	"fmt"
	"net/url"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// pools are the connection pools of the channels. A channel whose way did not change keeps
// its pool, and with it its connections, over generations.
type pools struct {
	mu      sync.Mutex
	current map[string]*upstream.Pool // by the channel's way
}

func newPools() *pools { return &pools{current: map[string]*upstream.Pool{}} }

// poolSet is the pools of one table.
type poolSet struct {
	byWay     map[string]*upstream.Pool
	byChannel map[*route.Channel]*upstream.Pool
	fresh     []*upstream.Pool
}

func (s *poolSet) pool(c *route.Channel) *upstream.Pool { return s.byChannel[c] }

// forget closes the pools of a generation that came to nothing.
func (s *poolSet) forget() {
	for _, p := range s.fresh {
		p.Close()
	}
}

// of finds or makes the pool of every channel that can be served. Nothing is dialled.
func (p *pools) of(cfg *config.Config, t *route.Table) (*poolSet, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := &poolSet{byWay: map[string]*upstream.Pool{}, byChannel: map[*route.Channel]*upstream.Pool{}}
	for _, g := range t.Groups() {
		for i, ch := range g.Channels {
			provider := cfg.Providers[ch.Provider]
			if !provider.Served() {
				continue
			}
			target, err := targetOf(&provider, cfg.Groups[g.Index].Channels[i].Credential)
			if err != nil {
				set.forget()
				return nil, fmt.Errorf("providers.%s: %w", ch.Provider, err)
			}
			way := ch.Label() + " " + config.Digest(target)
			pool := p.current[way]
			if pool == nil {
				if pool, err = upstream.NewPool(upstream.Options{Target: target}); err != nil {
					set.forget()
					return nil, fmt.Errorf("providers.%s: %w", ch.Provider, err)
				}
				set.fresh = append(set.fresh, pool)
			}
			set.byWay[way], set.byChannel[ch] = pool, pool
		}
	}
	return set, nil
}

// swap makes a set the current one and retires the pools that are not in it.
func (p *pools) swap(s *poolSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for way, pool := range p.current {
		if s.byWay[way] != pool {
			pool.Retire()
		}
	}
	p.current = s.byWay
}

func (p *pools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.current {
		pool.Close()
	}
}

// targetOf is where a channel's requests go. For providers that speak OpenAI's format a base URL
// without a path means the one that the API has everywhere, /v1; other adapters write their
// version into the path themselves.
func targetOf(p *config.Provider, credential config.Secret) (upstream.Target, error) {
	t, err := upstream.ParseTarget(p.BaseURL)
	if err != nil {
		return t, err
	}
	if t.BasePath == "" && p.Adapter.String() == "openai" {
		t.BasePath = "/v1"
	}
	if p.Auth.Kind == config.AuthQuery && credential != "" {
		if t.Query != "" {
			t.Query += "&"
		}
		t.Query += p.Auth.Name + "=" + url.QueryEscape(credential.Reveal())
	}
	t.TLS = upstream.TLS{CAFile: p.CAFile, CertFile: p.ClientCert, KeyFile: p.ClientKey}
	t.Proxy = p.Proxy.Reveal()
	return t, nil
}
