package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Watcher is told of every change of a circuit's state. It must not block, and may be called
// from any goroutine, never with a circuit's lock held.
type Watcher interface {
	CircuitChanged(Change)
}

// Registry holds the circuits by what they stand for. A circuit of one model on one channel
// exists with its route; one of a wider scope, or of a capability, from the first failure that
// a policy says it of. All methods may be called from any goroutine.
type Registry struct {
	watcher Watcher
	set     atomic.Pointer[Settings]
	rampEnd atomic.Int64 // instant: no circuit ramps after it

	mu       sync.Mutex
	circuits map[Key]*Circuit
	version  atomic.Uint64 // raised whenever a circuit other than of ChannelModel comes or goes
}

// NewRegistry returns an empty registry. The watcher may be nil.
func NewRegistry(s Settings, w Watcher) *Registry {
	r := &Registry{watcher: w, circuits: map[Key]*Circuit{}}
	r.Configure(s)
	return r
}

// Configure changes the settings of all circuits. What they have counted, and how long an open
// one stays open, remains.
func (r *Registry) Configure(s Settings) { r.set.Store(&s) }

func (r *Registry) tell(changes []Change) {
	if r.watcher == nil {
		return
	}
	for _, c := range changes {
		r.watcher.CircuitChanged(c)
	}
}

// Circuit returns the circuit of a key, making it if need be.
func (r *Registry) Circuit(k Key) *Circuit {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.circuits[k]
	if c == nil {
		c = &Circuit{key: k, registry: r}
		r.circuits[k] = c
		if k.Scope != ChannelModel {
			r.version.Add(1)
		}
	}
	return c
}

// Settings returns the settings in force. They are not to be changed.
func (r *Registry) Settings() *Settings { return r.set.Load() }

// Keep drops the circuits that are not wanted. Who still holds one may go on using it.
func (r *Registry) Keep(wanted func(*Circuit) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, c := range r.circuits {
		if !wanted(c) {
			r.drop(k)
		}
	}
}

// Forget drops what concerns one model of one channel only.
func (r *Registry) Forget(p *Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range scopes {
		if s == ChannelModel || s.Capability() != 0 {
			if k, ok := p.Key(s); ok {
				r.drop(k)
			}
		}
	}
}

func (r *Registry) drop(k Key) {
	if _, ok := r.circuits[k]; !ok {
		return
	}
	delete(r.circuits, k)
	if k.Scope != ChannelModel {
		r.version.Add(1)
	}
}

// Concern is a circuit that concerns a place, for requests that use what Uses says; 0 = all.
type Concern struct {
	*Circuit
	Uses Capabilities
}

// Concerns reports whether the circuit concerns a request that uses so much.
func (c *Concern) Concerns(uses Capabilities) bool { return c.Uses == 0 || c.Uses&uses != 0 }

// MaxConcerns is how many circuits can concern a place, its own included.
const MaxConcerns = int(scopes)

// Version changes whenever Wider may answer otherwise.
func (r *Registry) Version() uint64 { return r.version.Load() }

// Wider returns the circuits that concern a place beyond its own, at most MaxConcerns - 1,
// and the version at which that holds.
func (r *Registry) Wider(p *Place) ([]Concern, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Concern
	for s := Channel; s < scopes; s++ {
		k, ok := p.Key(s)
		if !ok {
			continue
		}
		if c := r.circuits[k]; c != nil {
			list = append(list, Concern{Circuit: c, Uses: s.Capability()})
		}
	}
	return list, r.version.Load()
}

// Each calls f for every circuit.
func (r *Registry) Each(f func(*Circuit)) {
	r.mu.Lock()
	list := make([]*Circuit, 0, len(r.circuits))
	for _, c := range r.circuits {
		list = append(list, c)
	}
	r.mu.Unlock()
	for _, c := range list {
		f(c)
	}
}

func (r *Registry) ramps(now time.Time) {
	end := int64(at(now).add(r.Settings().Ramp))
	for {
		old := r.rampEnd.Load()
		if old >= end || r.rampEnd.CompareAndSwap(old, end) {
			return
		}
	}
}

// Ramping reports whether any circuit may be ramping.
func (r *Registry) Ramping(now time.Time) bool { return at(now) < instant(r.rampEnd.Load()) }
