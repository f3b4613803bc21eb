package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy/peer"
	policystatus "github.com/interlock-gateway/interlock/gateway/policy/status"
)

// policyReports is who reports the state of the policy's bundles.
type policyReports struct {
	mu      sync.Mutex
	current *policystatus.Reporter // nil: nobody does
	as      config.PolicyReports
}

// of returns the reporter that a configuration asks for, nil where it asks for none: the one in use
// where that is the same.
func (p *policyReports) of(s *Server, cfg *config.Config) (*policystatus.Reporter, error) {
	want := cfg.Policy.Status
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.as == want || !want.Console && want.File == "" && want.URL == "" {
		if p.as == want {
			return p.current, nil
		}
		return nil, nil
	}
	o := policystatus.Options{
		File: want.File, URL: want.URL, Instance: s.decisions.instance, Version: s.options.Version,
		Peer:   peer.Options{Token: want.Token.Reveal(), ClientCert: want.ClientCert, ClientKey: want.ClientKey, CAFile: want.CAFile},
		Report: s.policyReport, Log: s.log.Logger,
	}
	if want.Console {
		o.Console = s.log.Logger
	}
	r, err := policystatus.Open(o)
	if err != nil {
		return nil, fmt.Errorf("policy.status: %w", err)
	}
	return r, nil
}

// swap makes r the one in use, and ends the one before.
func (p *policyReports) swap(r *policystatus.Reporter, cfg *config.Config) {
	p.mu.Lock()
	before := p.current
	p.current, p.as = r, cfg.Policy.Status
	p.mu.Unlock()
	if before != nil && before != r {
		go func() { _ = before.Close(context.Background()) }() // what is wrong with it was told
	}
	if r != nil {
		r.Changed()
	}
}

// forget ends a reporter that was made for a generation that is not used.
func (p *policyReports) forget(r *policystatus.Reporter) {
	p.mu.Lock()
	used := r == nil || r == p.current
	p.mu.Unlock()
	if !used {
		_ = r.Close(context.Background())
	}
}

func (p *policyReports) changed() {
	p.mu.Lock()
	r := p.current
	p.mu.Unlock()
	if r != nil {
		r.Changed()
	}
}

func (p *policyReports) close(ctx context.Context) error {
	p.mu.Lock()
	r := p.current
	p.current = nil
	p.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.Close(ctx)
}

// policyReport is what is reported: the bundles that are configured, and the candidate where it
// was promoted over them.
func (s *Server) policyReport() policystatus.Report {
	r := policystatus.Report{Plugins: map[string]policystatus.Plugin{"status": {State: "OK"}}}
	bundles := policystatus.Plugin{State: "OK"}
	for _, b := range s.policy.reported() {
		r.Bundles = append(r.Bundles, b)
		if b.Err != nil {
			bundles = policystatus.Plugin{State: "WARN", Message: b.Name + ": " + b.Err.Error()}
		}
	}
	r.Plugins["bundle"] = bundles
	c := s.candidateStatus()
	if p := c.Promoted; p != nil {
		r.Bundles = append(r.Bundles, policystatus.Bundle{Name: candidateName, Revision: p.Revision, Activated: p.At})
	}
	if c.State != admin.CandidateNone {
		state := policystatus.Plugin{State: "OK", Message: c.State}
		if c.LastError != "" {
			state = policystatus.Plugin{State: "WARN", Message: c.State + ": " + c.LastError}
		}
		r.Plugins[candidateName] = state
	}
	return r
}

// reported are the bundles in use, as reports have them.
func (p *policyState) reported() (list []policystatus.Bundle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened.revision == nil {
		return nil
	}
	known := map[string]policystatus.Bundle{}
	if p.follower != nil {
		for _, b := range p.follower.Status().Bundles {
			known[b.Name] = policystatus.Bundle{
				Request: b.Request, Answered: b.Answered, Downloaded: b.Downloaded, Activated: b.LoadedAt, Size: b.Size, Err: b.Err,
			}
		}
	}
	for _, part := range p.opened.revision.Parts() {
		name := part.Bundle.Source().Name()
		b, ok := known[name]
		if !ok {
			b = policystatus.Bundle{Request: p.loaded, Answered: p.loaded, Downloaded: p.loaded, Activated: p.loaded}
		}
		b.Name, b.Revision = name, part.Bundle.ID()
		list = append(list, b)
	}
	return list
}
