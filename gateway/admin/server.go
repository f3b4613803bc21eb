package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// Bounds of one connection and request. An operator's request is small and answered soon;
// an export moves its own deadline.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 30 * time.Second
	writeTimeout   = 2 * time.Minute
	idleTimeout    = time.Minute
	maxHeader      = 32 << 10
	maxConnections = 512
	// changeTimeout bounds a change once it has begun: it is not cut short by the operator
	// who goes away, so that what was done is also recorded.
	changeTimeout = time.Minute
)

// PolicyStatus is the policy in use, and what became of the latest change to it.
type PolicyStatus struct {
	Revision, Source string
	LoadedAt         time.Time
	LastError        string    // why the latest change was refused; "": it was not
	LastErrorAt      time.Time // zero: nothing was refused yet
	Bundles          []PolicyBundle
	Refused          int // changes that were refused since the configuration was loaded
	RollBacks        int // revisions that were rolled back since then
}

// PolicyBundle is one bundle of the policy in use, and what became of its latest change.
type PolicyBundle struct {
	Name, Source, Revision, Digest, ETag string
	Roots                                []string // what it owns
	Signed                               bool     // its signature was verified
	FromDisk                             bool     // the last good one: its server has not answered yet
	LoadedAt                             time.Time
	LastError                            string
	LastErrorAt                          time.Time
	NotKept                              string // why it is not on disk for a start without its server
}

// Plugin is a plugin that the configuration names.
type Plugin struct {
	Name, Source, SHA256 string
	Status               string // loaded or disabled
	Kind, Version, ABI   string // of the module in use, with what follows
	Operations           []string
	Endpoints            []string
	Capabilities         []string
	Since                time.Time
	Error                string // why the latest module or settings were not taken
}

// Condition is what readiness says. Degraded names what does not work with why; none of it
// takes the gateway out.
type Condition struct {
	Ready, Draining bool
	Degraded        map[string]string
}

// Options are what the operators' side shows and changes. All are required but Log, OpenAPI
// (default [OpenAPI]), Version and Now (default time.Now). The functions may be called from
// several goroutines.
type Options struct {
	Log     *telemetry.Log
	Metrics *telemetry.Metrics
	DB      *storage.DB
	Ledger  *ledger.Ledger
	State   *route.State
	// Generation returns the one that new requests begin on.
	Generation func() *flow.Generation
	// Reload builds a generation from the configuration as it is now and returns its number.
	// With an error nothing has changed; problems are what is wrong with the configuration.
	Reload func(context.Context) (generation uint64, problems []config.Problem, err error)
	// KeysChanged builds a generation that knows the stored keys as they are now.
	KeysChanged  func(context.Context) error
	PolicyStatus func() PolicyStatus
	// Candidate is the policy that is tried. Promote puts it in force, RollBack ends that, or the
	// trial; their errors are ErrNoCandidate, ErrInForce or what kept them from it, and then
	// nothing has changed.
	Candidate func() Candidate
	Promote   func(ctx context.Context, who, reason string) error
	RollBack  func(ctx context.Context, who string) error
	Plugins   func() []Plugin
	Condition func() Condition
	OpenAPI   []byte
	Version   string
	Now       func() time.Time
}

// Server is the operators' side. It keeps nothing of its own but what its metrics have shown.
type Server struct {
	Options
	log    *slog.Logger
	reader *ledger.Reader
	http   http.Server

	keys    sync.Mutex // held over a change of keys: one name is given once
	metrics http.Handler
	shown   shownKinds
}

// New makes the operators' side. Nothing is served before Serve.
func New(o Options) *Server {
	if o.OpenAPI == nil {
		o.OpenAPI = OpenAPI
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{Options: o, reader: o.Ledger.Reader(), metrics: o.Metrics.Handler()}
	s.log = slog.New(slog.DiscardHandler)
	if o.Log != nil {
		s.log = o.Log.Logger
	}
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what strangers send is no news
	}
	return s
}

// Serve serves the listener until Shutdown; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&boundedListener{Listener: l, free: make(chan struct{}, maxConnections), closed: make(chan struct{})})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown lets running requests finish until ctx ends, then cuts them.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // the reason is err
	}
	return err
}

// serve finds the endpoint, asks who it is, and answers. A fault of our own is a 500, not a
// connection that breaks without a word.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch fault := recover(); fault {
		case nil:
		case http.ErrAbortHandler:
			panic(fault)
		default:
			s.log.Error("admin request failed", "method", r.Method, "path", r.URL.Path, "panic", fault)
			s.refuse(w, &refusal{status: http.StatusInternalServerError, code: internalError, message: "the gateway failed at this request; its log says how"})
		}
	}()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	e, names, refused := s.find(r)
	who, denied := s.admit(r, e)
	switch {
	case denied != nil:
		s.refuse(w, denied)
	case refused != nil:
		if refused.allow != "" {
			w.Header().Set("Allow", refused.allow)
		}
		s.refuse(w, refused)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, e.bodyLimit())
		if err := e.handle(s, w, &call{Request: r, who: who, names: names}); err != nil {
			s.fail(w, r, err)
		}
		_, _ = io.Copy(io.Discard, r.Body) // what is unread and within the limit keeps the connection usable
	}
}

// boundedListener accepts no more than so many connections at once: strangers who hold them
// open cost a bounded amount of memory.
type boundedListener struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &boundedConn{Conn: c, free: l.free}, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

func (c *boundedConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}
