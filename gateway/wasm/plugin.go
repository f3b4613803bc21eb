package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Options say what to load and what it is allowed.
type Options struct {
	Name     string // the operator's name for it, in logs and metrics
	Module   []byte
	SHA256   string   // in hex; "": not checked
	Manifest []byte   // JSON, where it lies beside the module
	Limits   Limits   // the smaller of these and the manifest's hold
	Grants   []string // capabilities
	Config   []byte   // JSON, an object; nothing is an empty one
	Cache    *Cache   // nil: nothing is kept
	Log      *slog.Logger
	Metrics  Metrics
	PoolSize int // instances at most; 0: as many as processors, and at least two
	// KeepOutput keeps what a guest writes to its standard output and error in a call that fails,
	// granted or not, for Failure.Said. It is for those who write a plugin: what a guest writes may
	// quote a prompt, so a gateway does not ask for it.
	KeepOutput bool

	anyConfig bool // it will not be configured
}

// Metrics hears of calls. *telemetry.Metrics is one.
type Metrics interface {
	CountPluginCall(plugin, function string, took time.Duration)
	CountPluginTrap()
	// CountPluginRefused counts a result that the host did not take; what was wrong with it is one
	// of a few words.
	CountPluginRefused(plugin, reason string)
}

type noMetrics struct{}

func (noMetrics) CountPluginCall(string, string, time.Duration) {}
func (noMetrics) CountPluginTrap()                              {}
func (noMetrics) CountPluginRefused(string, string)             {}

// Plugin is a loaded module, ready to be called. It is safe for concurrent use. Who loads it
// holds it; further holders say Retain, and each says Release once.
type Plugin struct {
	name     string
	manifest *Manifest
	limits   Limits
	granted  map[string]bool
	starts   bool
	keeps    bool   // what guests write, see Options.KeepOutput
	setup    []byte // the input of configure
	log      *slog.Logger
	lines    logRate
	metrics  Metrics

	code    *code  // shared with the plugins of the same content
	release func() // gives the code back to the cache
	pool    pool

	holders   atomic.Int64
	closing   sync.Once
	closed    chan struct{}
	instances sync.Map // *instance → struct{}: those that exist, for who must kill them
}

// Load admits, compiles, starts and tries a module. The error is a *LoadError. It takes seconds
// for a large module that is not in the cache, and belongs where a configuration is built.
func Load(ctx context.Context, o Options) (*Plugin, error) {
	p, err := compile(ctx, &o)
	if err != nil {
		return nil, err
	}
	if err := p.warm(); err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

// compile admits and compiles a module. Nothing of it has run then.
func compile(ctx context.Context, o *Options) (*Plugin, error) {
	a, err := admit(o)
	if err != nil {
		return nil, err
	}
	p := &Plugin{
		name: o.Name, manifest: a.manifest, limits: a.limits, granted: a.granted, starts: a.starts, keeps: o.KeepOutput,
		setup: configureInput(o.config()), log: o.Log, metrics: o.Metrics, closed: make(chan struct{}),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.metrics == nil {
		p.metrics = noMetrics{}
	}
	p.lines.tokens = linesAtOnce
	p.holders.Store(1)
	size := o.PoolSize
	if size <= 0 {
		size = max(2, runtime.GOMAXPROCS(0))
	}
	p.pool.name, p.pool.size, p.pool.start = p.name, size, p.spawn

	cache := o.Cache
	if cache == nil {
		cache = &Cache{entries: map[string]*compiled{}}
	}
	if p.code, p.release, err = cache.compile(ctx, cacheKey(o.Module), a); err != nil {
		return nil, &LoadError{p.name, StepCompile, err}
	}
	return p, nil
}

// warm brings the first instance up and has it say what it is.
func (p *Plugin) warm() error {
	i, err := p.start()
	if err != nil {
		step := StepStart
		var guest *GuestError
		if errors.As(err, &guest) {
			step = StepConfigure
		}
		return &LoadError{p.name, step, err}
	}
	if err := p.describe(i); err != nil {
		p.discard(i)
		return &LoadError{p.name, StepManifest, err}
	}
	p.pool.total = 1
	p.pool.idle = append(p.pool.idle, i)
	return nil
}

// startBudget is for what runs before the first call.
func (p *Plugin) startBudget() (int64, time.Duration) {
	a := max(startTime, wallFactor*p.limits.allowance(len(p.setup)))
	return units(a), wallFactor * a
}

// start makes an instance and configures it. The error is a *GuestError where the guest refuses
// its configuration.
func (p *Plugin) start() (*instance, error) {
	i, err := p.begin()
	if err != nil {
		return nil, err
	}
	budget, wall := p.startBudget()
	if _, err := i.do(OpConfigure, p.setup, nil, budget, wall); err != nil {
		p.discard(i)
		return nil, err
	}
	i.born, i.calls = i.memory.Size(), 0
	return i, nil
}

// begin makes an instance that is not configured yet.
func (p *Plugin) begin() (*instance, error) {
	i, err := p.instantiate()
	if err != nil {
		return nil, err
	}
	p.instances.Store(i, struct{}{})
	if err := p.initialize(i); err != nil {
		p.discard(i)
		return nil, err
	}
	return i, nil
}

func (p *Plugin) discard(i *instance) {
	p.instances.Delete(i)
	i.close()
}

func (p *Plugin) initialize(i *instance) error {
	budget, wall := p.startBudget()
	i.allow(budget)
	if p.starts {
		if err := i.invoke(i.module.ExportedFunction(exportInitialize), wall, nil); err != nil {
			return err
		}
	}
	if err := i.invoke(i.module.ExportedFunction(exportABI), wall, i.stack[:1]); err != nil {
		return err
	}
	if major := api.DecodeU32(i.stack[0]) >> 16; major != abiMajor {
		return fmt.Errorf("it speaks version %d.%d of the ABI, this gateway %d.%d",
			major, api.DecodeU32(i.stack[0])&0xffff, abiMajor, abiMinor)
	}
	return nil
}

// describe holds what the guest says of itself against the manifest it was admitted with.
func (p *Plugin) describe(i *instance) error {
	text, err := p.said(i)
	if err != nil {
		return err
	}
	m, err := ParseManifest(text)
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	if !m.equal(p.manifest) {
		return errOtherManifest
	}
	return nil
}

var errOtherManifest = errors.New("what it says of itself is not what its manifest says")

// said is the manifest as the guest gives it.
func (p *Plugin) said(i *instance) ([]byte, error) {
	budget, wall := p.startBudget()
	out, err := i.do(OpDescribe, emptyContext(), nil, budget, wall)
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	if len(out) < 4 || uint64(binary.LittleEndian.Uint32(out)) > uint64(len(out)-4) {
		return nil, errors.New("describe: its result is not as the ABI has it")
	}
	return out[4 : 4+binary.LittleEndian.Uint32(out)], nil
}

// spawn is start for the pool.
func (p *Plugin) spawn() (*instance, error) {
	i, err := p.start()
	if err != nil {
		p.metrics.CountPluginTrap()
		p.log.Warn("plugin instance did not start", "plugin", p.name, "error", err.Error())
		return nil, p.pool.fail(NotStart, err)
	}
	return i, nil
}

// emptyContext is the context of an operation that belongs to no request.
func emptyContext() []byte {
	const fields = 4 + 8 + 3*4 // flags, now, and three empty strings
	b := binary.LittleEndian.AppendUint32(nil, fields)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(time.Now().UnixMilli()))
	return append(b, make([]byte, 3*4)...)
}

func configureInput(config []byte) []byte {
	b := emptyContext()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(config)))
	return append(b, config...)
}

// Name returns the operator's name for the plugin.
func (p *Plugin) Name() string { return p.name }

// Manifest returns what the plugin is. It must not be changed.
func (p *Plugin) Manifest() *Manifest { return p.manifest }

// Limits returns those that hold.
func (p *Plugin) Limits() Limits { return p.limits }

// Retain makes the caller a holder; false when the plugin has none left.
func (p *Plugin) Retain() bool {
	for {
		n := p.holders.Load()
		if n <= 0 {
			return false
		}
		if p.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives the plugin up. With its last holder it closes, in the background where calls
// are still running.
func (p *Plugin) Release() {
	if p.holders.Add(-1) == 0 {
		p.shut()
	}
}

// Close refuses new calls and waits until the running ones have come back; those that are still
// running when ctx ends are stopped. It returns when everything is freed, whoever still holds
// the plugin.
func (p *Plugin) Close(ctx context.Context) error {
	p.shut()
	select {
	case <-p.closed:
		return nil
	case <-ctx.Done():
	}
	p.instances.Range(func(i, _ any) bool {
		w := &i.(*instance).watched
		if until := w.until.Load(); until > 0 {
			w.stop(until)
		}
		return true
	})
	<-p.closed
	return ctx.Err()
}

func (p *Plugin) shut() {
	p.closing.Do(func() {
		drained := p.pool.close()
		finish := func() {
			p.free()
			close(p.closed)
		}
		select {
		case <-drained:
			finish()
		default:
			go func() {
				<-drained
				finish()
			}()
		}
	})
}

// free gives back all but the instances.
func (p *Plugin) free() { p.release() }
