package server

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/key"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// load reads the configuration and what the catalogue says of it.
// There is a result where there is a file.
func load(o Options) (*config.Config, *catalog.Catalog, *config.Result, error) {
	if o.Path == "" {
		return o.Config, catalog.New(o.Config), nil, nil
	}
	cat, r := catalog.Load(o.Path, o.Env)
	if err := r.Err(); err != nil {
		return nil, nil, r, err
	}
	return r.Config, cat, r, nil
}

// build makes a generation from a configuration and a policy (nil = the one that the
// configuration names) and swaps it in. On an error nothing has changed. s.building is held.
func (s *Server) build(ctx context.Context, cfg *config.Config, cat *catalog.Catalog, rev *policy.Revision) error {
	opened := s.policy.current()
	if rev == nil {
		var err error
		if opened, err = s.reopenPolicy(ctx, cfg); err != nil {
			s.policy.failed(err)
			return fmt.Errorf("policy: %w", err)
		}
		rev = opened.revision
	}
	opened.revision = rev
	stored, err := s.db.Keys(ctx)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	keys, err := key.NewTable(cfg.Keys, stored)
	if err != nil {
		s.log.Warn("a key made at run time cannot be used", "error", err.Error())
	}
	table := route.Build(cfg, cat, s.state)
	pools, err := s.pools.of(cfg, table)
	if err != nil {
		return err
	}
	decisions, err := s.decisions.of(s, cfg)
	if err != nil {
		pools.forget()
		return err
	}
	reports, err := s.reports.of(s, cfg)
	if err != nil {
		pools.forget()
		s.decisions.forget(decisions)
		return err
	}
	guests := s.plugins.of(ctx, cfg)
	adapters, err := guests.adapters(cfg, s.log)
	if err != nil {
		pools.forget()
		guests.forget()
		s.decisions.forget(decisions)
		s.reports.forget(reports)
		return err
	}
	decides := s.candidate.decides(rev)
	tried := s.candidate.try(ctx, s, cfg, decides)
	g, err := s.gateway.Build(flow.Parts{
		Number: s.number + 1, Config: cfg, Catalog: cat, Policy: decides, Trial: tried, Table: table, Keys: keys,
		Adapter: func(name string) adapter.Adapter { return adapters[name] }, Pool: pools.pool,
		Guard:       guests.guard,
		DecisionLog: decisions,
	})
	if err != nil {
		s.candidate.forget(tried)
		s.reports.forget(reports)
		s.decisions.forget(decisions)
		pools.forget()
		guests.forget()
		return err
	}
	s.number++
	s.metrics.Allow(names(cfg, cat, keys))
	table.Activate(time.Now())
	s.gateway.Use(g)
	s.pools.swap(pools)
	s.plugins.swap(guests, s.drained)
	s.decisions.swap(decisions, cfg, s.drained)
	s.candidate.use(s, cfg, rev, tried)
	s.policy.active(s, opened)
	s.reports.swap(reports, cfg)
	return nil
}

func names(cfg *config.Config, cat *catalog.Catalog, keys *key.Table) telemetry.Names {
	n := telemetry.Names{Models: cat.Names()}
	for _, g := range cfg.Groups {
		for _, c := range g.Channels {
			for m := range c.Models.Models {
				n.Models = append(n.Models, m)
			}
		}
	}
	for a := range cfg.Aliases {
		n.Models, n.Aliases = append(n.Models, a), append(n.Aliases, a)
	}
	for _, k := range keys.All() {
		if k.ID == "" {
			n.Keys = append(n.Keys, k.Name)
		}
	}
	return n
}
