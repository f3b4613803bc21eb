package server

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// Reload builds a new generation from the file and swaps it in. On any error the old one
// stays; problems lists every fault of the file.
func (s *Server) Reload(ctx context.Context) (uint64, []config.Problem, error) {
	if s.options.Path == "" {
		return 0, nil, errors.New("there is no configuration file to reload")
	}
	s.building.Lock()
	defer s.building.Unlock()
	return s.reload(ctx)
}

// reloadChanged is Reload for files that have changed, unless a reload has read them as they are
// now: one change is one generation.
func (s *Server) reloadChanged(ctx context.Context, paths []string) {
	s.building.Lock()
	defer s.building.Unlock()
	if !s.watcher.Taken(paths) {
		_, _, _ = s.reload(ctx) // it has logged what was wrong
	}
}

// reload does what Reload says. s.building is held.
func (s *Server) reload(ctx context.Context) (uint64, []config.Problem, error) {
	if s.watcher != nil {
		s.watcher.Take()
	}
	cat, r := catalog.Load(s.options.Path, s.options.Env)
	s.files = r.Files
	if s.watcher != nil {
		s.watcher.Follow(s.watched())
	}
	if err := r.Err(); err != nil {
		s.log.Error("reload refused; the configuration before stays", "error", err.Error())
		return 0, r.Errors, err
	}
	before := s.gateway.Generation().Config
	if err := s.build(ctx, r.Config, cat, nil); err != nil {
		s.log.Error("reload refused; the configuration before stays", "error", err.Error())
		var faults policy.Errors
		if errors.As(err, &faults) {
			var problems []config.Problem
			for _, f := range faults {
				problems = append(problems, config.Problem{File: f.File, Line: f.Line, Column: f.Column, Key: "policy.bundles", Message: f.Message})
			}
			return 0, problems, err
		}
		return 0, []config.Problem{{File: s.options.Path, Line: 1, Column: 1, Message: err.Error()}}, err
	}
	change := config.Diff(before, r.Config)
	for _, k := range change.Restart {
		s.log.Warn("a changed key needs a restart", "key", k)
	}
	n := s.gateway.Generation().Number
	s.log.Info("reloaded", "generation", n, "changed", strings.Join(change.Sections, ","))
	return n, nil, nil
}

// keysChanged builds a generation that knows the keys made at run time as they are now.
func (s *Server) keysChanged(ctx context.Context) error {
	s.building.Lock()
	defer s.building.Unlock()
	return s.rebuild(ctx)
}

// watched are the files whose change is a reload. Policy bundles have a watcher of their own.
// s.building is held.
func (s *Server) watched() []string {
	bundles := map[string]bool{}
	for _, b := range s.gateway.Generation().Config.Policy.Bundles {
		bundles[b.Path] = true
	}
	var files []string
	for _, f := range s.files {
		if !bundles[f] {
			files = append(files, f)
		}
	}
	return files
}

const sweepEvery = time.Second

// follow reloads when the file changes and lets expired switches go, until ctx ends.
func (s *Server) follow(ctx context.Context) {
	if s.options.Path != "" && s.gateway.Generation().Config.Watch {
		s.building.Lock()
		watcher := config.NewWatcher(s.watched())
		s.watcher = watcher
		s.building.Unlock()
		done := make(chan struct{})
		defer func() { <-done }()
		go func() {
			defer close(done)
			watcher.Run(ctx, func(paths []string) { s.reloadChanged(ctx, paths) })
		}()
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var plugins retry
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if plugins.due(now, s.plugins.wants()) {
				s.tryPluginsAgain(ctx)
			}
			if err := s.state.Switches().Sweep(ctx, now); err != nil && ctx.Err() == nil {
				s.log.Warn("expired switches could not be removed", "error", err.Error())
			}
		}
	}
}

// retry says when plugins that are out of reach are tried again: after a pause that doubles.
type retry struct {
	pause time.Duration
	at    time.Time
}

const (
	retryFirst = 5 * time.Second
	retryMost  = 5 * time.Minute
)

func (r *retry) due(now time.Time, wanted bool) bool {
	switch {
	case !wanted:
		*r = retry{}
		return false
	case r.pause == 0:
		r.pause, r.at = retryFirst, now.Add(retryFirst)
		return false
	case now.Before(r.at):
		return false
	}
	r.pause = min(2*r.pause, retryMost)
	r.at = now.Add(r.pause)
	return true
}

// tryPluginsAgain builds a generation of the configuration in use: what was out of reach may be
// there.
func (s *Server) tryPluginsAgain(ctx context.Context) {
	s.building.Lock()
	defer s.building.Unlock()
	if err := s.rebuild(ctx); err != nil && ctx.Err() == nil {
		s.log.Warn("plugins could not be tried again", "error", err.Error())
	}
}

// condition is what readiness says.
func (s *Server) condition() admin.Condition {
	c := admin.Condition{
		Ready: s.ready.Load() && !s.draining.Load(), Draining: s.draining.Load(), Degraded: map[string]string{},
	}
	if st := s.ledger.Status(); st.Degraded {
		c.Degraded["storage"] = st.Reason
	}
	st := s.policy.status()
	if st.LastError != "" {
		c.Degraded["policy"] = st.LastError
	}
	for _, b := range st.Bundles {
		if b.NotKept != "" {
			c.Degraded["policy_not_kept"] = b.Name + ": " + b.NotKept
		}
	}
	if st := s.candidateStatus(); st.LastError != "" {
		c.Degraded["policy_candidate"] = st.LastError
	}
	s.plugins.degraded(c.Degraded)
	return c
}

// memoryLimit is what the process may use: GOMEMLIMIT, else the container's limit, else the
// machine's memory.
func memoryLimit() int64 {
	if n := debug.SetMemoryLimit(-1); n < math.MaxInt64 {
		return n
	}
	limit := int64(math.MaxInt64)
	for _, path := range [...]string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) >= 2 && f[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					limit = min(limit, kb<<10)
				}
			}
		}
	}
	if limit == math.MaxInt64 {
		return 4 << 30 // nothing says: a modest machine
	}
	return limit
}

const (
	// drainLook is how often it is looked whether an old generation has drained.
	drainLook = time.Second
	// drainLeast is for requests whose caller was authenticated on the old generation and whose
	// body is still on its way.
	drainLeast = time.Minute
)

// drained is closed when no request can be on a generation before the one in use, or when the
// gateway ends.
func (s *Server) drained() <-chan struct{} {
	number, done := s.gateway.Generation().Number, make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		tick := time.NewTicker(drainLook)
		defer tick.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-tick.C:
				if time.Since(began) >= drainLeast && !s.gateway.RunningBefore(number) {
					return
				}
			}
		}
	}()
	return done
}
