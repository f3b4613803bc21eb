package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
	policytrial "github.com/interlock-gateway/interlock/gateway/policy/trial"
)

// candidateName is the name of the candidate's bundle.
const candidateName = "candidate"

// In data_dir: what was promoted or rolled back, and a copy of the bundle that was promoted.
const (
	candidateFile = "candidate.json"
	promotedFile  = "candidate.tar.gz"
)

// candidate is the bundle that is tried beside those in force, and the one of it that was
// promoted. A candidate that is refused changes nothing but what operators are told.
type candidate struct {
	dir string // of its files

	mu       sync.Mutex
	source   policy.Source
	timeout  time.Duration
	follows  bool // there is a source
	watcher  *policy.Watcher
	revision *policy.Revision // the latest that was not refused
	loaded   time.Time
	lastErr  string
	errAt    time.Time
	trial    *policytrial.Trial
	as       config.Candidate
	promoted *policy.Revision
	kept     keptCandidate
}

// keptCandidate outlives a restart.
type keptCandidate struct {
	// Promoted is in force instead of the revision Over, until the configuration has another.
	Promoted *promotion `json:"promoted"`
	// RolledBack is the candidate that is not tried any more.
	RolledBack string `json:"rolled_back"`
}

type promotion struct {
	Revision string    `json:"revision"`
	Over     string    `json:"over"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Reason   string    `json:"reason"`
}

// open reads what was promoted before a restart. What cannot be read any more is told and let
// go: the configured bundles are in force.
func (c *candidate) open(ctx context.Context, s *Server, cfg *config.Config) {
	c.dir = filepath.Join(cfg.DataDir, policyFolder)
	b, err := os.ReadFile(filepath.Join(c.dir, candidateFile))
	if err == nil {
		err = json.Unmarshal(b, &c.kept)
	}
	if err == nil && c.kept.Promoted != nil {
		c.promoted, err = policy.Load(ctx, policy.Path(candidateName, filepath.Join(c.dir, promotedFile)), policyOptions(cfg))
		if err == nil && c.promoted.ID() != c.kept.Promoted.Revision {
			err = fmt.Errorf("the copy is %s, not %s", c.promoted.ID(), c.kept.Promoted.Revision)
		}
	}
	if err != nil {
		c.promoted, c.kept = nil, keptCandidate{}
		if !errors.Is(err, os.ErrNotExist) {
			s.log.Error("the promoted policy cannot be used; the configured one is in force", "error", err.Error())
		}
	}
	if c.promoted != nil {
		go s.tryPromoted(c.promoted)
	}
}

// decides returns the revision in force where the configuration has that one.
func (c *candidate) decides(configured *policy.Revision) *policy.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.promoted != nil && c.kept.Promoted.Over == configured.ID() {
		return c.promoted
	}
	return configured
}

// try returns the trial that a configuration asks for, nil for none: the one that runs where it
// is the same.
func (c *candidate) try(ctx context.Context, s *Server, cfg *config.Config, active *policy.Revision) *policytrial.Trial {
	c.load(ctx, s, cfg)
	c.mu.Lock()
	defer c.mu.Unlock()
	rev := c.revision
	if rev == nil || rev.ID() == c.kept.RolledBack || rev.SameContent(active) {
		return nil
	}
	want := cfg.Policy.Candidate
	if c.trial != nil && c.as == want && c.trial.Candidate() == rev && c.trial.Of().Active.ID() == active.ID() {
		return c.trial
	}
	return policytrial.New(policytrial.Options{
		Active: active, Candidate: rev, Canary: want.Mode == config.Canary, Percent: want.Percent,
		Compared: s.metrics.CountCompared, Differs: s.metrics.CountDifference,
	})
}

// load follows the candidate that a configuration names.
func (c *candidate) load(ctx context.Context, s *Server, cfg *config.Config) {
	path := cfg.Policy.Candidate.Path
	src, o := policy.Path(candidateName, path), policyOptions(cfg)
	c.mu.Lock()
	same := c.follows == (path != "") && (path == "" || c.source == src && c.timeout == o.Timeout)
	if same {
		c.mu.Unlock()
		return
	}
	before := c.watcher
	c.source, c.timeout, c.follows, c.watcher = src, o.Timeout, path != "", nil
	c.revision, c.lastErr, c.errAt = nil, "", time.Time{}
	c.mu.Unlock()
	if before != nil {
		go before.Close() // it may be waiting for what is being built
	}
	if path == "" {
		return
	}
	rev, err := policy.Load(ctx, src, o)
	c.note(s, rev, err)
	w, err := policy.Watch(src, o, rev, func(rev *policy.Revision, err error) { s.candidateChanged(src, rev, err) })
	if err != nil {
		s.log.Error("the candidate policy cannot be watched", "error", err.Error())
		return
	}
	c.mu.Lock()
	c.watcher = w
	c.mu.Unlock()
}

// note keeps a candidate, or why it is refused.
func (c *candidate) note(s *Server, rev *policy.Revision, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.lastErr, c.errAt = err.Error(), time.Now()
		s.log.Error("candidate policy refused; what is in force is not affected", "error", err.Error())
		return
	}
	c.revision, c.loaded, c.lastErr = rev, time.Now(), ""
	s.log.Info("candidate policy loaded", "revision", rev.ID())
}

// candidateChanged is told by the watcher.
func (s *Server) candidateChanged(src policy.Source, rev *policy.Revision, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	s.building.Lock()
	defer s.building.Unlock()
	c := &s.candidate
	c.mu.Lock()
	current := c.follows && c.source == src
	c.mu.Unlock()
	if !current {
		return
	}
	if c.note(s, rev, err); err != nil {
		return
	}
	if err := s.rebuild(ctx); err != nil {
		s.log.Error("the candidate policy is not tried", "error", err.Error())
	}
}

// rebuild makes a generation of the configuration and the bundles in use. s.building is held.
func (s *Server) rebuild(ctx context.Context) error {
	g := s.gateway.Generation()
	return s.build(ctx, g.Config, g.Catalog, s.policy.current().revision)
}

// use notes what is in use. A promotion ends when the configuration has other bundles than those
// that it was put in the place of.
func (c *candidate) use(s *Server, cfg *config.Config, configured *policy.Revision, t *policytrial.Trial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trial != nil && c.trial != t {
		go c.trial.Close() // it may be asking a revision that is slow
	}
	c.trial, c.as = t, cfg.Policy.Candidate
	if p := c.kept.Promoted; p != nil && p.Over != configured.ID() {
		s.log.Info("the promoted policy is no longer in force: the configuration has other bundles", "promoted", p.Revision, "revision", configured.ID())
		c.promoted, c.kept.Promoted = nil, nil
		if err := c.keep(); err != nil {
			s.log.Error("the end of a promotion is not kept", "error", err.Error())
		}
	}
}

// forget ends a trial that is not used.
func (c *candidate) forget(t *policytrial.Trial) {
	c.mu.Lock()
	used := t == nil || t == c.trial
	c.mu.Unlock()
	if !used {
		t.Close()
	}
}

func (c *candidate) close() {
	c.mu.Lock()
	w, t := c.watcher, c.trial
	c.watcher, c.trial = nil, nil
	c.mu.Unlock()
	if w != nil {
		_ = w.Close() // never an error
	}
	if t != nil {
		t.Close()
	}
}

// keep writes what outlives a restart. c.mu is held.
func (c *candidate) keep() error {
	b, err := json.Marshal(c.kept)
	if err != nil {
		return err
	}
	return c.write(candidateFile, func(f *os.File) error { _, err := f.Write(b); return err })
}

// write puts a file in place: a crash leaves the one before or this one.
func (c *candidate) write(name string, fill func(*os.File) error) (err error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, ".new-*")
	if err != nil {
		return err
	}
	err = errors.Join(fill(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the reason is err
	}
	return err
}

// promote puts the candidate in force instead of the configured bundles.
func (s *Server) promote(ctx context.Context, who, reason string) error {
	s.building.Lock()
	defer s.building.Unlock()
	c := &s.candidate
	c.mu.Lock()
	rev, before := c.revision, c.promoted
	was := c.kept
	c.mu.Unlock()
	configured := s.policy.current().revision
	switch {
	case rev == nil:
		return admin.ErrNoCandidate
	case rev.SameContent(s.gateway.Generation().Policy):
		return admin.ErrInForce
	}
	p := &promotion{Revision: rev.ID(), Over: configured.ID(), At: time.Now().UTC(), Who: who, Reason: reason}
	c.mu.Lock()
	c.promoted, c.kept = rev, keptCandidate{Promoted: p}
	err := c.write(promotedFile, func(f *os.File) error {
		for _, part := range rev.Parts() {
			if part.Bundle.Source().Name() == candidateName {
				return part.Bundle.WriteArchive(f)
			}
		}
		return errors.New("the candidate is made of nothing") // it is always a part
	})
	if err == nil {
		err = c.keep()
	}
	c.mu.Unlock()
	if err == nil {
		err = s.rebuild(ctx)
	}
	if err != nil {
		return s.undo(before, was, err)
	}
	s.log.Info("candidate policy promoted", "revision", rev.ID(), "over", configured.ID(), "who", who)
	go s.tryPromoted(rev)
	return nil
}

// tryPromoted watches a promoted policy like a new revision: one whose decisions keep timing out
// gives way to the bundles before it. It ends with the server.
func (s *Server) tryPromoted(rev *policy.Revision) {
	end := time.NewTimer(policy.TrialFor)
	defer end.Stop()
	select {
	case <-s.ctx.Done():
		return
	case <-end.C:
		return
	case <-rev.Failing():
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if err := s.takeBack(ctx, "the gateway: its decisions keep timing out", rev); err != nil {
		s.log.Error("a promoted policy whose decisions keep timing out is still in force", "revision", rev.ID(), "error", err.Error())
	}
}

// rollBack puts the configured bundles in force again where the candidate was promoted, and
// tries the candidate no more until it has another content.
func (s *Server) rollBack(ctx context.Context, who string) error { return s.takeBack(ctx, who, nil) }

// takeBack is rollBack; of a promoted revision only, if one is given, and only while that is in
// force.
func (s *Server) takeBack(ctx context.Context, who string, only *policy.Revision) error {
	s.building.Lock()
	defer s.building.Unlock()
	c := &s.candidate
	c.mu.Lock()
	before, was := c.promoted, c.kept
	var out string
	switch {
	case only != nil && before != only:
		c.mu.Unlock()
		return nil
	case was.Promoted != nil:
		out = was.Promoted.Revision
	case c.trial != nil:
		out = c.trial.Candidate().ID()
	default:
		c.mu.Unlock()
		return admin.ErrNoCandidate
	}
	c.promoted, c.kept = nil, keptCandidate{RolledBack: out}
	err := c.keep()
	c.mu.Unlock()
	if err == nil {
		err = s.rebuild(ctx)
	}
	if err != nil {
		return s.undo(before, was, err)
	}
	s.log.Info("candidate policy rolled back", "revision", out, "in_force", s.gateway.Generation().Policy.ID(), "who", who)
	return nil
}

// undo restores what a change that failed has changed.
func (s *Server) undo(before *policy.Revision, was keptCandidate, err error) error {
	c := &s.candidate
	c.mu.Lock()
	defer c.mu.Unlock()
	c.promoted, c.kept = before, was
	return errors.Join(err, c.keep())
}

// candidateStatus is what operators are told.
func (s *Server) candidateStatus() admin.Candidate {
	c := &s.candidate
	c.mu.Lock()
	defer c.mu.Unlock()
	st := admin.Candidate{
		Path: c.as.Path, Mode: string(c.as.Mode), Percent: c.as.Percent,
		LoadedAt: c.loaded, LastError: c.lastErr, LastErrorAt: c.errAt, State: admin.CandidateNone,
	}
	if p := c.kept.Promoted; p != nil {
		st.Promoted = &admin.Promotion{Revision: p.Revision, Over: p.Over, At: p.At, Who: p.Who, Reason: p.Reason}
	}
	if c.revision != nil {
		st.Revision = c.revision.ID()
	}
	switch {
	case c.trial != nil && c.as.Mode == config.Canary:
		st.State = admin.CandidateCanary
	case c.trial != nil:
		st.State = admin.CandidateShadow
	case c.revision == nil && c.follows:
		st.State = admin.CandidateRefused
	case c.revision == nil:
	case c.revision.ID() == c.kept.RolledBack:
		st.State = admin.CandidateRolledBack
	default:
		st.State = admin.CandidateInForce
	}
	if c.trial != nil {
		r := c.trial.Report()
		st.Report = &r
	}
	return st
}

// policyStatus is what operators are told of the policy: the revision is the one that decides,
// promoted or configured.
func (s *Server) policyStatus() admin.PolicyStatus {
	st := s.policy.status()
	if g := s.gateway.Generation(); g != nil {
		st.Revision = g.Policy.ID()
	}
	return st
}
