package downstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/downstream/watch"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// Options are what a Front needs. Left-out values take the defaults shown.
type Options struct {
	Gateway *flow.Gateway
	Log     *telemetry.Log
	Metrics *telemetry.Metrics
	OpenAPI []byte // the document at /openapi.json; nil = 404

	TLS               TLSFiles
	MaxRequestBody    int64         // bytes; default 64 MiB
	MaxInflightBody   int64         // bytes of all bodies whose output is not committed yet; 0 = no limit
	ReadHeaderTimeout time.Duration // default 10 s
	ReadBodyTimeout   time.Duration // default 60 s
	IdleTimeout       time.Duration // default 2 min
	WriteStall        time.Duration // how long one write may wait for a slow reader; default 30 s
	KeepHalfClosed    bool          // a caller's FIN does not count as leaving: only a reset does

	MaxConns      int          // open connections; default 100,000
	MaxConnsPerIP int          // open connections of one address; 0 = no limit
	Watch         watch.Method // default: the best that the operating system has
}

const (
	defaultMaxRequestBody    = 64 << 20
	defaultReadHeaderTimeout = 10 * time.Second
	defaultReadBodyTimeout   = 60 * time.Second
	defaultIdleTimeout       = 2 * time.Minute
	defaultWriteStall        = 30 * time.Second
	defaultMaxConns          = 100_000

	// headBuffer bounds a request's head, and is what each open connection costs; writeBuffer
	// holds a head and the first events of a stream.
	headBuffer  = 16 << 10
	writeBuffer = 8 << 10

	// endGrace is what requests get to end, with an error event, once a drain has run out;
	// flushGrace is what their connections get to send it.
	endGrace   = 5 * time.Second
	flushGrace = 500 * time.Millisecond
)

func (o *Options) fill() {
	fill(&o.MaxRequestBody, defaultMaxRequestBody)
	fill(&o.ReadHeaderTimeout, defaultReadHeaderTimeout)
	fill(&o.ReadBodyTimeout, defaultReadBodyTimeout)
	fill(&o.IdleTimeout, defaultIdleTimeout)
	fill(&o.WriteStall, defaultWriteStall)
	fill(&o.MaxConns, defaultMaxConns)
}

func fill[T int | int64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Front is the callers' side of a running gateway.
type Front struct {
	options  Options
	gateway  gateway
	listener *watch.Listener
	sockets  *sockets
	server   *fasthttp.Server
	bodies   budget

	running  atomic.Int64 // requests between their head and their last byte
	draining atomic.Bool  // answers ask callers to close
	ending   atomic.Bool  // no request starts any more
}

// New returns a front on a listener, which it owns from then on. The error names the
// certificate file that cannot be used.
func New(l net.Listener, o Options) (*Front, error) {
	return newFront(l, live{o.Gateway}, o)
}

func newFront(l net.Listener, g gateway, o Options) (*Front, error) {
	o.fill()
	f := &Front{options: o, gateway: g, bodies: budget{limit: o.MaxInflightBody}}
	secure, err := o.TLS.config(o.Log)
	if err != nil {
		return nil, err
	}
	f.sockets = &sockets{Listener: l, stall: o.WriteStall}
	f.listener, err = watch.Listen(f.sockets, watch.Options{
		Method: o.Watch, TLS: secure, MaxConns: o.MaxConns, MaxConnsPerIP: o.MaxConnsPerIP,
	})
	if err != nil {
		return nil, err
	}
	f.server = &fasthttp.Server{
		HeaderReceived: f.early,
		ExpectHandler:  f.expect,
		Handler:        f.serve,
		ErrorHandler:   f.broken,
		Logger:         quiet{o.Log},

		// The body is left on the wire, but for one byte, until the handler has looked at
		// the head: it reads the body itself, within the limits.
		StreamRequestBody:  true,
		MaxRequestBodySize: 1,

		ReadTimeout:     o.ReadHeaderTimeout,
		IdleTimeout:     o.IdleTimeout,
		Concurrency:     o.MaxConns + 1,
		ReadBufferSize:  headBuffer,
		WriteBufferSize: writeBuffer,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
	}
	return f, nil
}

// Addr returns the address that the front listens on.
func (f *Front) Addr() net.Addr { return f.listener.Addr() }

// Serve accepts and serves callers until Drain or Close; it then returns nil.
func (f *Front) Serve() error { return f.server.Serve(f.listener) }

// Running counts the requests that are being served.
func (f *Front) Running() int { return int(f.running.Load()) }

// StartDrain asks callers to close their connections after the next answer. Requests are
// still accepted.
func (f *Front) StartDrain() { f.draining.Store(true) }

// Drain stops accepting and lets what is running finish. When ctx ends first, the gateway is
// told to end every request that is left, and they get a moment to say so to their callers;
// what then still runs is cut, and reported.
func (f *Front) Drain(ctx context.Context) error {
	f.StartDrain()
	shutdown, stop := context.WithCancel(context.Background())
	defer stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = f.server.ShutdownWithContext(shutdown)
	}()

	if !f.idle(ctx) || !wait(ctx, closed) {
		f.ending.Store(true)
		f.gateway.DrainNow()
		grace, cancel := context.WithTimeout(context.Background(), endGrace)
		defer cancel()
		if f.idle(grace) { // last bytes may still be in a connection's buffer
			flush, done := context.WithTimeout(grace, flushGrace)
			defer done()
			wait(flush, closed)
		}
	}
	left := f.running.Load()
	stop()
	err := f.Close()
	<-closed
	if left > 0 {
		return errors.Join(fmt.Errorf("downstream: %d requests had to be cut", left), err)
	}
	return err
}

// idle waits until no request runs; false if ctx ended first.
func (f *Front) idle(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for f.running.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends the front at once: it stops accepting and cuts every connection.
func (f *Front) Close() error {
	f.ending.Store(true)
	f.sockets.hurry.Store(true)
	if err := f.listener.CloseAll(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// quiet keeps the HTTP library's own messages, most of them about callers that left, out of
// the log.
type quiet struct{ log *telemetry.Log }

func (q quiet) Printf(format string, args ...any) {
	if q.log != nil {
		q.log.Debug("connection", "message", fmt.Sprintf(format, args...))
	}
}
