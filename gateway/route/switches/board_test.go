package switches

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

var (
	day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ctx = context.Background()
)

// shelf is a Store in memory.
type shelf struct {
	mu   sync.Mutex
	kept map[name]storage.Switch
	err  error
}

func newShelf() *shelf { return &shelf{kept: map[name]storage.Switch{}} }

func (s *shelf) Switches(context.Context) (list []storage.Switch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sw := range s.kept {
		list = append(list, sw)
	}
	return list, s.err
}

func (s *shelf) PutSwitch(_ context.Context, sw storage.Switch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.kept[name{sw.Kind, sw.Name}] = sw
	}
	return s.err
}

func (s *shelf) DeleteSwitch(_ context.Context, kind, of string) (storage.Switch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sw, ok := s.kept[name{kind, of}]
	if s.err == nil && !ok {
		return sw, storage.ErrNotFound
	}
	if s.err == nil {
		delete(s.kept, name{kind, of})
	}
	return sw, s.err
}

type names map[name]bool

func (n names) Known(kind, of string) bool { return n[name{kind, of}] }

var known = names{
	{Channel, "g/c"}: true, {Group, "g"}: true, {Provider, "p"}: true, {Account, "a"}: true,
	{Model, "org/m"}: true, {Alias, "team/agent"}: true,
}

func set(kind, of string) storage.Switch {
	return storage.Switch{Kind: kind, Name: of, Reason: "r", Who: "w"}
}

func TestNamesTheConfigurationLacksAreRefused(t *testing.T) {
	b := NewBoard(newShelf())
	for _, ok := range []storage.Switch{
		set(Channel, "g/c"), set(Group, "g"), set(Provider, "p"), set(Account, "a"), set(Model, "org/m"), set(Alias, "team/agent"),
		set(Action, "same_route_retry"), set(Action, "same_contract_fallback"), set(Action, "model_substitution"),
		set(AliasAction, "team/agent/model_substitution"), set(Policy, "candidate"),
	} {
		_, err := b.Put(ctx, ok, known, day)
		require.NoError(t, err, "%s/%s", ok.Kind, ok.Name)
	}
	require.Len(t, b.Set().List(day), 11)
	for _, bad := range []storage.Switch{
		set("planet", "x"), set(Channel, "g/d"), set(Channel, "c"), set(Group, ""), set(Provider, "q"), set(Account, "g/c"), set(Model, "m"),
		set(Alias, "agent"), set(Action, "initial"), set(Action, "stop"), set(Action, ""), set(AliasAction, "team/agent/initial"),
		set(AliasAction, "other/model_substitution"), set(AliasAction, "model_substitution"), set(Policy, "active"),
	} {
		_, err := b.Put(ctx, bad, known, day)
		require.ErrorIs(t, err, ErrUnknown, "%s/%s", bad.Kind, bad.Name)
	}
	over := set(Group, "g")
	over.Until = day
	_, err := b.Put(ctx, over, known, day)
	require.ErrorIs(t, err, ErrInvalid)
	require.Len(t, b.Set().List(day), 11)
}

func TestSwitchesSurviveARestart(t *testing.T) {
	s := newShelf()
	b := NewBoard(s)
	sw := set(Model, "org/m")
	sw.Until = day.Add(time.Hour)
	_, err := b.Put(ctx, sw, known, day)
	require.NoError(t, err)

	b = NewBoard(s)
	require.NoError(t, b.Load(ctx))
	got := b.Set().Off(Model, "org/m", day)
	require.Equal(t, "r", got.Reason)
	require.Equal(t, day, got.At)
	changed := b.Changed()
	require.NoError(t, b.Load(ctx))
	require.Equal(t, changed, b.Changed(), "the same switches wake nobody")

	was, err := b.Delete(ctx, Model, "org/m")
	require.NoError(t, err)
	require.Equal(t, "w", was.Who)
	require.Empty(t, s.kept)
	require.True(t, b.Set().Empty())
	_, err = b.Delete(ctx, Model, "org/m")
	require.ErrorIs(t, err, ErrUnknown)
	_, open := <-changed
	require.False(t, open)
}

func TestSwitchEndsByItself(t *testing.T) {
	s := newShelf()
	b := NewBoard(s)
	sw := set(Group, "g")
	sw.Until = day.Add(time.Minute)
	_, err := b.Put(ctx, sw, known, day)
	require.NoError(t, err)
	_, err = b.Put(ctx, set(Provider, "p"), known, day)
	require.NoError(t, err)
	require.NotNil(t, b.Set().Off(Group, "g", sw.Until.Add(-1)))
	require.Nil(t, b.Set().Off(Group, "g", sw.Until))
	require.Len(t, b.Set().List(sw.Until), 1)
	require.NoError(t, b.Sweep(ctx, sw.Until.Add(-1)))
	require.Len(t, s.kept, 2)
	require.NoError(t, b.Sweep(ctx, sw.Until))
	require.Len(t, s.kept, 1)
	require.Nil(t, b.Set().Find(Group, "g"))
}

func TestReplacingTellsWhatWas(t *testing.T) {
	b := NewBoard(nil)
	first, second := set(Group, "g"), set(Group, "g")
	second.Reason = "another"
	before, err := b.Put(ctx, first, known, day)
	require.NoError(t, err)
	require.Nil(t, before)
	before, err = b.Put(ctx, second, known, day)
	require.NoError(t, err)
	require.Equal(t, "r", before.Reason)
	require.Equal(t, "another", b.Set().Off(Group, "g", day).Reason)
	require.Len(t, b.Set().list, 1)
}

func TestActs(t *testing.T) {
	b := NewBoard(nil)
	var none *Set
	require.Zero(t, none.Acts("x", day))
	require.Zero(t, b.Set().Acts("team/agent", day))
	put := func(s storage.Switch) {
		_, err := b.Put(ctx, s, known, day)
		require.NoError(t, err)
	}
	put(set(Action, "same_route_retry"))
	own := set(AliasAction, "team/agent/model_substitution")
	own.Until = day.Add(time.Minute)
	put(own)
	all := b.Set().Acts("", day)
	require.True(t, all.Has(failure.SameRouteRetry))
	require.False(t, all.Has(failure.ModelSubstitution))
	require.False(t, all.Has(failure.Initial))
	require.Equal(t, all, b.Set().Acts("another", day))
	require.True(t, b.Set().Acts("team/agent", day).Has(failure.ModelSubstitution))
	require.Equal(t, all, b.Set().Acts("team/agent", own.Until))
}

func TestStoreFailureChangesNothing(t *testing.T) {
	s := newShelf()
	b := NewBoard(s)
	_, err := b.Put(ctx, set(Group, "g"), known, day)
	require.NoError(t, err)
	s.err = errors.New("disk full")
	_, err = b.Put(ctx, set(Provider, "p"), known, day)
	require.ErrorIs(t, err, s.err)
	_, err = b.Delete(ctx, Group, "g")
	require.ErrorIs(t, err, s.err)
	require.ErrorIs(t, b.Load(ctx), s.err)
	require.Len(t, b.Set().List(day), 1)
}

// Readers, waiters and operators against each other: whoever takes the channel first and looks
// then misses no change.
func TestBoardHammer(t *testing.T) {
	b := NewBoard(newShelf())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				changed := b.Changed()
				if b.Set().Off(Provider, "p", day) != nil {
					return
				}
				<-changed
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for range 50 {
				_, _ = b.Put(ctx, set(Group, "g"), known, day)
				_, _ = b.Delete(ctx, Group, "g")
				_ = b.Load(ctx)
			}
		})
	}
	wg.Go(func() { _, _ = b.Put(ctx, set(Provider, "p"), known, day) })
	wg.Wait()
	require.NotNil(t, b.Set().Off(Provider, "p", day))
}

func TestNoSwitchCostsNothing(t *testing.T) {
	b := NewBoard(nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s := b.Set()
		if !s.Empty() || s.Acts("a", day) != 0 {
			panic("not empty")
		}
		b.Changed()
	}))
}
