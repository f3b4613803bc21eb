package switches

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// ErrUnknown: there is nothing of that name to switch, or no switch of that name is set.
var ErrUnknown = errors.New("not found")

// ErrInvalid: the switch itself makes no sense.
var ErrInvalid = errors.New("not valid")

// Store keeps switches over restarts. *storage.DB is one.
type Store interface {
	Switches(context.Context) ([]storage.Switch, error)
	PutSwitch(context.Context, storage.Switch) error
	DeleteSwitch(ctx context.Context, kind, name string) (storage.Switch, error)
}

// Names knows what the configuration has: Known says whether there is a channel (GROUP/NAME),
// group, provider, account, model or alias of that name.
type Names interface {
	Known(kind, name string) bool
}

// Board holds the switches that are set. All methods may be called from any goroutine.
type Board struct {
	store   Store
	current atomic.Pointer[version]
	mu      sync.Mutex // held over a change, the store's included
}

// version is one Set and the channel that is closed when it is no longer the current one.
type version struct {
	set  *Set
	over chan struct{}
}

// NewBoard returns a board without switches: Load fetches those that are kept. A nil store
// keeps nothing.
func NewBoard(s Store) *Board {
	b := &Board{store: s}
	b.current.Store(&version{set: newSet(nil), over: make(chan struct{})})
	return b
}

// Set returns the switches that are set now.
func (b *Board) Set() *Set { return b.current.Load().set }

// Changed returns a channel that is closed at the next change. Who waits takes it first, looks
// at the Set then, and waits last: so no change is missed.
func (b *Board) Changed() <-chan struct{} { return b.current.Load().over }

// swap makes a set the current one and wakes who waits.
func (b *Board) swap(s *Set) {
	old := b.current.Swap(&version{set: s, over: make(chan struct{})})
	close(old.over)
}

// Load fetches the switches that are kept. Nobody is woken where nothing has changed.
func (b *Board) Load(ctx context.Context) error {
	if b.store == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := b.store.Switches(ctx)
	if err != nil {
		return fmt.Errorf("switches: %w", err)
	}
	s := newSet(list)
	if !slices.EqualFunc(s.list, b.Set().list, same) {
		b.swap(s)
	}
	return nil
}

func same(a, b storage.Switch) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Reason == b.Reason && a.Who == b.Who &&
		a.Until.Equal(b.Until) && a.At.Equal(b.At)
}

// Put sets a switch, or replaces it, and returns the one that was in force before, nil if none
// was. The error is ErrUnknown where the configuration lacks the name, ErrInvalid where its end
// has passed; otherwise the store's, and then nothing has changed.
func (b *Board) Put(ctx context.Context, sw storage.Switch, names Names, now time.Time) (before *storage.Switch, err error) {
	if err := check(&sw, names, now); err != nil {
		return nil, err
	}
	if sw.At.IsZero() {
		sw.At = now
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store != nil {
		if err := b.store.PutSwitch(ctx, sw); err != nil {
			return nil, fmt.Errorf("switches: %w", err)
		}
	}
	set := b.Set()
	before = set.Off(sw.Kind, sw.Name, now)
	b.swap(newSet(set.with(sw)))
	return before, nil
}

// Delete takes a switch away and returns it. ErrUnknown where none of that name is set.
func (b *Board) Delete(ctx context.Context, kind, of string) (storage.Switch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := b.Set()
	sw := set.Find(kind, of)
	if sw == nil {
		return storage.Switch{}, fmt.Errorf("switch %s/%s is not set: %w", kind, of, ErrUnknown)
	}
	if err := b.remove(ctx, kind, of); err != nil {
		return storage.Switch{}, err
	}
	b.swap(newSet(set.without(kind, of)))
	return *sw, nil
}

// Sweep takes away the switches whose end has passed. They are out of force without it.
func (b *Board) Sweep(ctx context.Context, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := b.Set()
	kept := make([]storage.Switch, 0, len(set.list))
	var err error
	for _, sw := range set.list {
		if !Active(&sw, now) {
			e := b.remove(ctx, sw.Kind, sw.Name)
			if e == nil {
				continue
			}
			err = errors.Join(err, e)
		}
		kept = append(kept, sw)
	}
	if len(kept) < len(set.list) {
		b.swap(newSet(kept))
	}
	return err
}

func (b *Board) remove(ctx context.Context, kind, of string) error {
	if b.store == nil {
		return nil
	}
	if _, err := b.store.DeleteSwitch(ctx, kind, of); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("switches: %w", err)
	}
	return nil
}

// check says what is wrong with a switch, and what is allowed.
func check(sw *storage.Switch, names Names, now time.Time) error {
	if !sw.Until.IsZero() && !now.Before(sw.Until) {
		return fmt.Errorf("until %s has passed: %w", sw.Until.Format(time.RFC3339), ErrInvalid)
	}
	known := false
	switch sw.Kind {
	case Channel, Group, Provider, Account, Model, Alias:
		known = names.Known(sw.Kind, sw.Name)
	case Action:
		_, known = act(sw.Name)
	case AliasAction:
		alias, word, ok := splitAliasAction(sw.Name)
		if ok {
			if _, ok = act(word); ok {
				known = names.Known(Alias, alias)
			}
		}
	case Policy:
		known = sw.Name == Candidate
	default:
		return fmt.Errorf("%q is no kind of switch; the kinds are %s: %w", sw.Kind, strings.Join(kinds, ", "), ErrUnknown)
	}
	if known {
		return nil
	}
	return fmt.Errorf("the configuration has no %s %q; %s: %w", sw.Kind, sw.Name, allowed(sw.Kind), ErrUnknown)
}

func allowed(kind string) string {
	acts := strings.Join([]string{
		failure.SameRouteRetry.String(), failure.SameContractFallback.String(), failure.ModelSubstitution.String(),
	}, ", ")
	switch kind {
	case Channel:
		return "the name of a channel is GROUP/NAME"
	case Action:
		return "the acts are " + acts
	case AliasAction:
		return "its name is ALIAS/ACT, and the acts are " + acts
	case Policy:
		return "only " + Candidate + " is one"
	default:
		return "only names in the configuration can be switched"
	}
}
