package server

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// policyFolder is where the last good bundles of servers are kept, in data_dir.
const policyFolder = "policy"

// bundleSource is where one bundle of the configuration comes from.
func bundleSource(b *config.Bundle) (policy.Source, error) {
	src := policy.Path(b.Name, b.Path)
	if b.URL != "" {
		src = policy.Remote(b.Name, b.URL, policy.RemoteOptions{
			Poll: b.Poll, Token: b.Token.Reveal(), ClientCert: b.ClientCert, ClientKey: b.ClientKey, CAFile: b.CAFile,
		})
	}
	if b.VerificationKey == "" {
		return src, nil
	}
	key, err := policy.ParseKey(b.VerificationKey.Reveal(), b.VerificationKeyID, b.VerificationScope)
	return src.SignedWith(key), err
}

// policySet is the bundles that a configuration names. A key that cannot be read is told to
// found.
func policySet(cfg *config.Config, found Found) policy.Set {
	set := policy.Set{Dir: filepath.Join(cfg.DataDir, policyFolder), Options: policyOptions(cfg)}
	for i := range cfg.Policy.Bundles {
		src, err := bundleSource(&cfg.Policy.Bundles[i])
		if err != nil {
			found(bundleKey(i, "verification_key"), err.Error())
		}
		set.Sources = append(set.Sources, src)
	}
	return set
}

func policyOptions(cfg *config.Config) policy.Options {
	return policy.Options{
		Timeout: cfg.Policy.Timeout,
		// Decisions differ by key: with many keys the usual number would be too few. It is the
		// configuration that makes it larger, never a caller.
		CacheSize: min(4096+2*len(cfg.Keys), 32<<10),
	}
}

// reopenPolicy reads the bundles of a configuration that takes the place of another. What has
// not changed stays the same revision; what was rolled back is not read again.
func (s *Server) reopenPolicy(ctx context.Context, cfg *config.Config) (o openedPolicy, err error) {
	before := s.policy.current()
	var faults []error
	o.set = policySet(cfg, func(key, message string) { faults = append(faults, errors.New(key+": "+message)) })
	o.set.Withdrawn = before.set.Withdrawn
	if err = errors.Join(faults...); err == nil {
		o.revision, o.troubles, err = o.set.Open(ctx, before.revision)
	}
	for _, t := range o.troubles {
		var out *policy.WithdrawnError
		if errors.As(t.Err, &out) {
			s.log.Error("policy bundle not taken; the one before stays", "bundle", t.Source.Name(), "error", t.Err.Error())
		}
	}
	if err == nil && before.revision != nil && before.same(o.set) && before.revision.ID() == o.revision.ID() {
		return before, nil
	}
	return o, err
}

// openedPolicy is a revision, and what it was opened as.
type openedPolicy struct {
	set      policy.Set
	revision *policy.Revision
	troubles []policy.Trouble
	unread   error // why it is not known what was rolled back before a restart
}

func (o *openedPolicy) same(set policy.Set) bool {
	return slices.Equal(o.set.Sources, set.Sources) && o.set.Dir == set.Dir && o.set.Options.Timeout == set.Options.Timeout
}

// policyState is the active revision, what became of the latest change, and who follows the
// bundles.
type policyState struct {
	mu       sync.Mutex
	opened   openedPolicy
	taking   *policy.Revision // what the follower is putting in force
	loaded   time.Time
	lastErr  string
	errAt    time.Time
	follower *policy.Follower
}

// active notes what is in use and follows the bundles it came from. s.building is held.
func (p *policyState) active(s *Server, o openedPolicy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.opened
	if before.revision == nil || before.revision.ID() != o.revision.ID() {
		p.loaded = time.Now()
	}
	p.opened, p.lastErr = o, ""
	if p.follower != nil && before.same(o.set) && (o.revision == before.revision || o.revision == p.taking) {
		return
	}
	for _, t := range o.troubles {
		if errors.As(t.Err, new(*policy.WithdrawnError)) && before.revision != nil {
			continue // told when it was read
		}
		s.log.Error("policy bundle not taken; the last good one on disk is in force", "bundle", t.Source.Name(), "error", t.Err.Error())
	}
	if p.follower != nil {
		go p.follower.Close() // a hook of it may be waiting for what is being built
	}
	p.follower = s.followPolicy(o, before.revision)
}

// followPolicy keeps the bundles up to date. A follower that was replaced meanwhile changes
// nothing more.
func (s *Server) followPolicy(o openedPolicy, previous *policy.Revision) *policy.Follower {
	var f *policy.Follower
	if previous != nil && previous.ID() == o.revision.ID() {
		previous = nil
	}
	f = policy.Follow(o.set, o.revision, previous, o.troubles, policy.Hooks{
		Activate: func(r *policy.Revision) error { return s.takePolicy(&f, r) },
		Refused: func(src policy.Source, err error) {
			s.metrics.CountPolicyRefused(src.Name())
			s.log.Error("policy refused; the one before stays", "bundle", src.Name(), "error", err.Error())
		},
		RolledBack: func(from, to *policy.Revision) {
			s.metrics.CountPolicyRollBack()
			s.log.Error("policy rolled back: its decisions kept timing out", "from", from.ID(), "revision", to.ID())
		},
		Changed: s.reports.changed,
		NotKept: func(src policy.Source, err error) {
			s.metrics.CountPolicyNotKept(src.Name())
			s.log.Error("a policy bundle is in force and not kept on disk: a start without its server would not have it", "bundle", src.Name(), "error", err.Error())
		},
	})
	return f
}

// takePolicy puts a revision of a follower in force.
func (s *Server) takePolicy(f **policy.Follower, r *policy.Revision) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	s.building.Lock() // also: the follower was made under it
	defer s.building.Unlock()
	if !s.policy.takes(*f, r) {
		return errors.New("another configuration was loaded")
	}
	defer s.policy.takes(*f, nil)
	g := s.gateway.Generation()
	if err := s.build(ctx, g.Config, g.Catalog, r); err != nil {
		return err
	}
	s.metrics.CountPolicyActivated()
	s.log.Info("policy activated", "revision", r.ID(), "generation", s.gateway.Generation().Number)
	return nil
}

// takes notes what the follower is putting in force, and reports whether it is the one in use.
func (p *policyState) takes(f *policy.Follower, r *policy.Revision) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taking = r
	return p.follower == f
}

func (p *policyState) failed(err error) {
	p.mu.Lock()
	p.lastErr, p.errAt = err.Error(), time.Now()
	p.mu.Unlock()
}

// current is what is in use.
func (p *policyState) current() openedPolicy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

func (p *policyState) close() {
	p.mu.Lock()
	f := p.follower
	p.follower = nil
	p.mu.Unlock()
	if f != nil {
		f.Close()
	}
}

func (p *policyState) status() admin.PolicyStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := admin.PolicyStatus{LoadedAt: p.loaded, LastError: p.lastErr, LastErrorAt: p.errAt}
	if p.opened.revision == nil {
		return st
	}
	st.Revision = p.opened.revision.ID()
	known := map[string]policy.BundleStatus{}
	if p.follower != nil {
		f := p.follower.Status()
		st.Refused, st.RollBacks = f.Refused, f.RollBacks
		for _, b := range f.Bundles {
			known[b.Name] = b
			if b.LastErrorAt.After(st.LastErrorAt) {
				st.LastErrorAt = b.LastErrorAt
				if p.lastErr == "" {
					st.LastError = b.LastError
				}
			}
			if st.LastError == "" {
				st.LastError = b.LastError
			}
		}
	}
	var names []string
	for _, part := range p.opened.revision.Parts() {
		b := part.Bundle
		name := b.Source().Name()
		names = append(names, name)
		view := admin.PolicyBundle{
			Name: name, Source: b.Source().Where(), Revision: b.Revision(), Digest: b.Digest(), ETag: b.ETag(),
			Roots: part.Roots, Signed: b.Signed(), LoadedAt: p.loaded,
		}
		if k, ok := known[name]; ok {
			view.ETag, view.FromDisk, view.LoadedAt = k.ETag, k.FromDisk, k.LoadedAt
			view.LastError, view.LastErrorAt, view.NotKept = k.LastError, k.LastErrorAt, k.NotKept
		}
		st.Bundles = append(st.Bundles, view)
	}
	st.Source = strings.Join(names, ",")
	return st
}
