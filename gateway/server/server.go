package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/run"

	"github.com/interlock-gateway/interlock/gateway/admin"
	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/downstream"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// Options say what a server is made of.
type Options struct {
	// Path is the configuration file; "" where Config is given. Only a file can be reloaded.
	Path string
	// Config is a configuration without a file.
	Config *config.Config
	// Env is what a file may refer to.
	Env config.Env
	// Log is where log lines go; nil = one made from the configuration, to standard error.
	Log     *telemetry.Log
	Version string
	// Listener and AdminListener are used instead of the configuration's addresses; nil = not.
	Listener, AdminListener net.Listener
}

// Server is one running gateway.
type Server struct {
	options Options
	log     *telemetry.Log
	ownLog  bool
	metrics *telemetry.Metrics
	db      *storage.DB
	ledger  *ledger.Ledger
	state   *route.State
	gateway *flow.Gateway
	front   *downstream.Front
	admin   *admin.Server
	at      net.Listener // the callers'
	adminAt net.Listener

	building  sync.Mutex // one generation is built at a time
	number    uint64
	pools     *pools
	plugins   *pluginHost
	policy    policyState
	decisions *decisionLogs
	reports   policyReports
	candidate candidate
	watcher   *config.Watcher
	files     []string

	ready, draining atomic.Bool
	stop            context.CancelFunc // ends policy evaluations and watchers
	ctx             context.Context
	closed          sync.Once
	done            chan struct{} // closed when Run has returned
}

// Done is closed when Run has returned.
func (s *Server) Done() <-chan struct{} { return s.done }

// spoolFile is where records go while storage is away, in data_dir.
const spoolFile = "ledger.spool"

// New opens the listeners and builds everything; nothing is served before Run. ctx bounds the
// start only. What is wrong with a configuration or what it names is a *config.Invalid where
// there is a file. A start that fails for that, or for want of a port, has made no file.
func New(ctx context.Context, o Options) (*Server, error) {
	cfg, cat, r, err := load(o)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, log: o.Log, decisions: newDecisionLogs(), metrics: telemetry.NewMetrics(telemetry.Build{Version: o.Version}), done: make(chan struct{})}
	if r != nil {
		s.files = r.Files
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.start(ctx, cfg, cat, r); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// start makes what the server is made of. What is left of it after an error, close releases.
func (s *Server) start(ctx context.Context, cfg *config.Config, cat *catalog.Catalog, r *config.Result) error {
	f := startFaults{result: r}
	opened := loadPolicy(ctx, cfg, f.add)
	checkState(cfg, f.add)
	checkProviders(cfg, f.add)
	s.at = listener(s.options.Listener, "listen.address", cfg.Listen.Address, f.add)
	s.adminAt = listener(s.options.AdminListener, "admin.listen", cfg.Admin.Listen, f.add)
	if err := f.err(); err != nil {
		return err
	}
	if s.log == nil {
		var err error
		if s.log, err = telemetry.NewLog(telemetry.LogOptions{Level: string(cfg.Log.Level), Format: string(cfg.Log.Format)}); err != nil {
			return err
		}
		s.ownLog = true
	}
	if err := s.open(ctx, cfg); err != nil {
		return err
	}
	if opened.unread != nil {
		s.log.Warn("what was rolled back before the start is not known", "error", opened.unread.Error())
	}
	if err := s.listen(cfg); err != nil { // before the plugins are compiled, which takes longest
		return err
	}
	s.building.Lock()
	s.policy.opened.set, s.policy.opened.troubles = opened.set, opened.troubles
	defer s.building.Unlock()
	return s.build(ctx, cfg, cat, opened.revision)
}

// startFaults are what is wrong with a configuration, placed in its file where there is one.
type startFaults struct {
	result *config.Result
	list   []error
}

func (f *startFaults) add(key, message string) {
	f.list = append(f.list, errors.New(key+": "+message))
	if f.result != nil {
		f.result.Fail(key, message)
	}
}

func (f *startFaults) err() error {
	if f.result != nil {
		return f.result.Err()
	}
	return errors.Join(f.list...)
}

// open opens what outlives generations.
func (s *Server) open(ctx context.Context, cfg *config.Config) error {
	durability, _ := ledger.ParseDurability(string(cfg.Storage.Ledger.Durability)) // validated with the file
	var err error
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	s.db, err = storage.Open(ctx, storage.Options{URL: cfg.Storage.URL, Sync: durability == ledger.Sync})
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	s.ledger, err = ledger.Open(ctx, ledger.Options{
		DB: s.db, Durability: durability, Retention: cfg.Storage.Ledger.Retention,
		MaxSize: int64(cfg.Storage.Ledger.MaxSize), SpoolPath: filepath.Join(cfg.DataDir, spoolFile),
	})
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	board := switches.NewBoard(s.db)
	if err := board.Load(ctx); err != nil {
		return fmt.Errorf("switches: %w", err)
	}
	s.state = route.NewState(route.StateOptions{Store: s.db, Switches: board, Watcher: &observer{s: s}})
	if err := s.state.Load(ctx); err != nil {
		return err
	}
	s.candidate.open(ctx, s, cfg)
	s.pools = newPools()
	if s.plugins, err = newPluginHost(s.log, s.metrics, cfg.DataDir); err != nil {
		return fmt.Errorf("plugins: %w", err)
	}
	s.gateway = flow.New(flow.Options{
		Ledger: s.ledger, Metrics: s.metrics, Log: s.log, Now: time.Now, Context: s.ctx,
	})
	return nil
}

// listen makes what serves the listeners.
func (s *Server) listen(cfg *config.Config) (err error) {
	l := &cfg.Listen
	s.front, err = downstream.New(s.at, downstream.Options{
		Gateway: s.gateway, Log: s.log, Metrics: s.metrics, OpenAPI: admin.OpenAPI,
		TLS:               downstream.TLSFiles{Cert: l.TLS.CertFile, Key: l.TLS.KeyFile, ClientCA: l.TLS.ClientCAFile},
		MaxRequestBody:    int64(l.MaxRequestBody),
		MaxInflightBody:   l.MaxInflightBody.Of(memoryLimit()),
		ReadHeaderTimeout: l.ReadHeaderTimeout, ReadBodyTimeout: l.ReadBodyTimeout, IdleTimeout: l.IdleTimeout,
		KeepHalfClosed: l.HalfClose == config.HalfCloseKeep,
	})
	if err != nil {
		return err
	}
	s.admin = admin.New(admin.Options{
		Log: s.log, Metrics: s.metrics, DB: s.db, Ledger: s.ledger, State: s.state,
		Generation: s.gateway.Generation, Reload: s.Reload, KeysChanged: s.keysChanged,
		Candidate: s.candidateStatus, Promote: s.promote, RollBack: s.rollBack,
		PolicyStatus: s.policyStatus, Plugins: s.plugins.status, Condition: s.condition, OpenAPI: admin.OpenAPI,
		Version: s.options.Version, Now: time.Now,
	})
	return nil
}

// listener opens an address; nil where that cannot be.
func listener(given net.Listener, key, address string, found Found) net.Listener {
	if given != nil {
		return given
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		found(key, err.Error())
		return nil
	}
	return l
}

// Addr is the address for callers, AdminAddr the one for operators.
func (s *Server) Addr() net.Addr      { return s.front.Addr() }
func (s *Server) AdminAddr() net.Addr { return s.adminAt.Addr() }

// Gateway is the data plane, for what drives it in the same process.
func (s *Server) Gateway() *flow.Gateway { return s.gateway }

// Run serves until ctx ends, then drains and stops. now, which may be nil, cuts the drain
// short when it is closed. The error is nil after an orderly stop.
func (s *Server) Run(ctx context.Context, now <-chan struct{}) error {
	defer close(s.done)
	var g run.Group
	finish := make(chan struct{})
	g.Add(func() error { return s.front.Serve() }, func(error) { s.drain(now) })
	g.Add(func() error { return s.admin.Serve(s.adminAt) }, func(error) { s.stopAdmin() })
	g.Add(func() error { s.follow(s.ctx); return nil }, func(error) { s.stop() })
	g.Add(func() error {
		select {
		case <-ctx.Done():
		case <-finish:
		}
		return nil
	}, func(error) { close(finish) })
	s.ready.Store(true)
	s.log.Info("serving", "address", s.Addr().String(), "admin", s.AdminAddr().String(),
		"generation", s.gateway.Generation().Number, "version", s.options.Version)
	err := g.Run()
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(err, s.close(end))
}

// drain lets running requests finish: not ready but still accepting for drain_delay, then no
// new ones, then whatever is left is ended after drain_timeout.
func (s *Server) drain(now <-chan struct{}) {
	l := &s.gateway.Generation().Config.Listen
	s.draining.Store(true)
	s.front.StartDrain()
	s.log.Info("draining", "delay", l.DrainDelay.String(), "timeout", l.DrainTimeout.String())
	wait(l.DrainDelay, now)
	limit, cancel := context.WithTimeout(context.Background(), l.DrainTimeout)
	defer cancel()
	if now != nil {
		go func() {
			select {
			case <-now:
				cancel()
			case <-limit.Done():
			}
		}()
	}
	if err := s.front.Drain(limit); err != nil {
		s.log.Warn("drain", "error", err.Error())
	}
}

func wait(d time.Duration, now <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-now:
	}
}

func (s *Server) stopAdmin() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.admin.Shutdown(ctx); err != nil {
		s.log.Warn("admin listener", "error", err.Error())
	}
}

// close releases everything, in the order in which things stand on each other. It may be
// called for a server that was only partly built.
func (s *Server) close(ctx context.Context) (err error) {
	s.closed.Do(func() {
		s.stop()
		if s.front != nil {
			err = errors.Join(err, s.front.Close())
		} else if s.at != nil {
			_ = s.at.Close() // nothing was served on it
		}
		if s.adminAt != nil {
			_ = s.adminAt.Close() // Shutdown has closed it already after a normal run
		}
		err = errors.Join(err, s.reports.close(ctx))
		s.candidate.close()
		s.policy.close()
		if s.pools != nil {
			s.pools.close()
		}
		if s.plugins != nil {
			s.plugins.close(ctx)
		}
		if s.state != nil {
			err = errors.Join(err, s.state.Flush(ctx))
		}
		if s.ledger != nil {
			err = errors.Join(err, s.ledger.Close(ctx))
		}
		if s.db != nil {
			err = errors.Join(err, s.db.Close())
		}
		err = errors.Join(err, s.decisions.close(ctx))
		if s.ownLog {
			err = errors.Join(err, s.log.Close())
		}
	})
	return err
}

// Close stops a server that is not running.
func (s *Server) Close(ctx context.Context) error { return s.close(ctx) }
