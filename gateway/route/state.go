package route

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Store keeps isolations over restarts. *storage.DB is one.
type Store interface {
	Isolations(context.Context) ([]storage.Isolation, error)
	PutIsolation(context.Context, storage.Isolation) error
	DeleteIsolation(ctx context.Context, scope string) (storage.Isolation, error)
}

// Watcher is told what operators should see. It must not block, and may be called from any
// goroutine.
type Watcher interface {
	// CircuitChanged tells every change of a circuit.
	CircuitChanged(breaker.Change)
	// IsolationChanged tells that an account was isolated, or that it no longer is.
	IsolationChanged(IsolationChange)
	// Investigate asks for a person to look at something.
	Investigate(Investigation)
	// NotStored tells that an isolation, or its end, could not be kept: it holds until the
	// next restart only.
	NotStored(error)
}

// IsolationChange tells that an account was isolated, or that it no longer is.
type IsolationChange struct {
	Account  string
	Isolated bool
	Reason   string // of the isolation; of its end: probe, credential_changed, reset or removed
	At       time.Time
}

// Why an isolation ended.
const (
	endedByProbe      = "probe"
	endedByCredential = "credential_changed"
	endedByReset      = "reset"
	endedByRemoval    = "removed"
)

// The kinds of investigations that routes ask for.
const (
	IsolatedAccount = "isolated_account"
	CircuitReopened = "circuit_reopened"
)

// Investigation is something a person should look into.
type Investigation struct {
	Kind  string // IsolatedAccount or CircuitReopened
	Scope string // what it is about: account/NAME, channel/GROUP/NAME, channel_model/GROUP/NAME/MODEL …
	Cause string // a reason code
	At    time.Time
}

// State is what was learnt about channels and accounts, and what bounds them. It outlives the
// Tables that use it. Safe for concurrent use.
type State struct {
	circuits *breaker.Registry
	switches *switches.Board
	watcher  Watcher
	keeper   keeper

	mu       sync.Mutex
	channels map[string]*channelState // by GROUP/NAME
	accounts map[string]*account      // by name
	windows  map[string]*limit.Window // by group
	kept     []storage.Isolation      // of an earlier process, until a table takes them over
}

// channelState is what outlives generations of one channel.
type channelState struct {
	gate    *limit.Gate
	latency atomic.Int64 // moving average of the time to first output, in nanoseconds; 0 = none yet
	last    atomic.Pointer[Failure]
}

// Failure is the latest failure of a channel that spoke against it.
type Failure struct {
	At     time.Time
	Class  failure.Class
	Reason string
	Model  string // public name
}

// saw counts a time to first output into the moving average.
func (c *channelState) saw(d time.Duration) {
	if d <= 0 {
		return
	}
	for {
		old := c.latency.Load()
		next := int64(d)
		if old != 0 {
			next = old + (int64(d)-old)/8
		}
		if c.latency.CompareAndSwap(old, max(next, 1)) {
			return
		}
	}
}

// StateOptions are what a State works with. Each may be left out.
type StateOptions struct {
	Store    Store           // nil: isolations end with the process
	Switches *switches.Board // nil: one that keeps nothing
	Watcher  Watcher         // nil: nobody is told
}

// NewState returns a state in which nothing was learnt yet.
func NewState(o StateOptions) *State {
	s := &State{
		switches: o.Switches, watcher: o.Watcher,
		channels: map[string]*channelState{}, accounts: map[string]*account{}, windows: map[string]*limit.Window{},
	}
	if s.switches == nil {
		s.switches = switches.NewBoard(nil)
	}
	if s.watcher == nil {
		s.watcher = nobody{}
	}
	s.keeper = keeper{store: o.Store, failed: s.watcher.NotStored}
	s.circuits = breaker.NewRegistry(breaker.Settings{}, circuitWatcher{s.watcher})
	return s
}

// Load fetches the isolations of an earlier process. The first Table takes over those whose
// credential is still in use; call it before.
func (s *State) Load(ctx context.Context) error {
	if s.keeper.store == nil {
		return nil
	}
	list, err := s.keeper.store.Isolations(ctx)
	if err != nil {
		return fmt.Errorf("isolations: %w", err)
	}
	s.mu.Lock()
	s.kept = list
	s.mu.Unlock()
	return nil
}

// Flush waits until what was learnt is in the store.
func (s *State) Flush(ctx context.Context) error { return s.keeper.flush(ctx) }

// Switches returns the board of kill switches.
func (s *State) Switches() *switches.Board { return s.switches }

// channel returns a channel's state. The lock is held.
func (s *State) channel(key string, limit func() *limit.Gate) *channelState {
	c := s.channels[key]
	if c == nil {
		c = &channelState{gate: limit()}
		s.channels[key] = c
	}
	return c
}

// window returns a group's window. The lock is held.
func (s *State) window(group string, perMinute int) *limit.Window {
	w := s.windows[group]
	if w == nil {
		w = limit.NewWindow(perMinute)
		s.windows[group] = w
	}
	return w
}

// account returns an account. The lock is held.
func (s *State) account(name string) *account {
	a := s.accounts[name]
	if a == nil {
		a = &account{name: name, state: s}
		s.accounts[name] = a
	}
	return a
}

// nobody is the Watcher where there is none.
type nobody struct{}

func (nobody) CircuitChanged(breaker.Change)    {}
func (nobody) IsolationChanged(IsolationChange) {}
func (nobody) Investigate(Investigation)        {}
func (nobody) NotStored(error)                  {}

// circuitWatcher turns changes of circuits into what the Watcher should see.
type circuitWatcher struct{ Watcher }

func (w circuitWatcher) CircuitChanged(c breaker.Change) {
	w.Watcher.CircuitChanged(c)
	if c.Again {
		w.Investigate(Investigation{Kind: CircuitReopened, Scope: c.Key.String(), Cause: "opened_twice_within_an_hour", At: c.At})
	}
}
