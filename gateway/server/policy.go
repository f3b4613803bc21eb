package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// source is the bundle that a configuration names, else the built-in.
func source(cfg *config.Config) policy.Source {
	if i := activeBundle(cfg); i >= 0 {
		return policy.Path(cfg.Policy.Bundles[i].Name, cfg.Policy.Bundles[i].Path)
	}
	return policy.Builtin()
}

// activeBundle is the index of the first bundle with a path; -1 where there is none.
func activeBundle(cfg *config.Config) int {
	return slices.IndexFunc(cfg.Policy.Bundles, func(b config.Bundle) bool { return b.Path != "" })
}

func policyOptions(cfg *config.Config) policy.Options {
	return policy.Options{Timeout: cfg.Policy.Timeout}
}

// policyState is the active revision, what became of the latest change, and who watches for
// the next.
type policyState struct {
	mu       sync.Mutex
	source   policy.Source
	revision *policy.Revision
	loaded   time.Time
	lastErr  string
	errAt    time.Time
	watcher  *policy.Watcher
}

// active notes the revision in use and watches where it came from.
func (p *policyState) active(s *Server, src policy.Source, o policy.Options, rev *policy.Revision) {
	p.mu.Lock()
	moved := p.revision == nil || p.source != src
	if p.revision == nil || p.revision.ID() != rev.ID() {
		p.loaded = time.Now()
	}
	p.source, p.revision, p.lastErr = src, rev, ""
	var before *policy.Watcher
	if moved {
		before, p.watcher = p.watcher, nil
	}
	p.mu.Unlock()
	if !moved {
		return
	}
	if before != nil {
		go before.Close() // it may be the one that called us
	}
	w, err := policy.Watch(src, o, rev, s.policyChanged)
	if err != nil {
		s.log.Error("the policy cannot be watched", "error", err.Error())
		return
	}
	p.mu.Lock()
	p.watcher = w
	p.mu.Unlock()
}

func (p *policyState) failed(err error) {
	p.mu.Lock()
	p.lastErr, p.errAt = err.Error(), time.Now()
	p.mu.Unlock()
}

func (p *policyState) close() {
	p.mu.Lock()
	w := p.watcher
	p.watcher = nil
	p.mu.Unlock()
	if w != nil {
		_ = w.Close() // never an error
	}
}

func (p *policyState) status() admin.PolicyStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := admin.PolicyStatus{Source: p.source.Name(), LoadedAt: p.loaded, LastError: p.lastErr, LastErrorAt: p.errAt}
	if p.revision != nil {
		st.Revision = p.revision.ID()
	}
	return st
}

// policyChanged is told by the watcher: a new revision, or why what is on disk is refused.
func (s *Server) policyChanged(rev *policy.Revision, err error) {
	if err != nil {
		s.policy.failed(err)
		s.log.Error("policy refused; the one before stays", "error", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	s.building.Lock()
	defer s.building.Unlock()
	g := s.gateway.Generation()
	if err := s.build(ctx, g.Config, g.Catalog, rev); err != nil {
		s.policy.failed(err)
		s.log.Error("policy not activated; the one before stays", "error", err.Error())
		return
	}
	s.log.Info("policy activated", "revision", rev.ID(), "generation", s.gateway.Generation().Number)
}
