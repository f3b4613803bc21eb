package route

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/route/limit"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

var (
	_ Store  = (*storage.DB)(nil)
	_ Models = (*catalog.Catalog)(nil)
)

// A reload keeps what did not change: circuits, permits, admissions, cool-downs.
func TestReloadCarriesOver(t *testing.T) {
	s := NewState(StateOptions{})
	first := setup([]config.Channel{channel("a", serving(serves("m", "n"))), channel("b")})
	first.Groups[0].RPM = 2
	old := build(first, s)
	a, b := find(t, old, "g0", "a", "m"), find(t, old, "g0", "b", "m")
	failing(t, a, day, 3, serverError)
	enter(t, b, day).Report(day, rateLimited(time.Minute))
	for range 2 {
		ok, _ := old.Group("g0").RPM.Take(day)
		require.True(t, ok)
	}
	require.True(t, a.Channel.Gate.TryEnter())

	second := setup([]config.Channel{channel("a", serving(serves("m"))), channel("b", weight(7)), channel("c")}, []config.Channel{channel("d")})
	second.Groups[0].RPM = 3
	second.Groups[0].Channels[0].MaxConcurrency = 1
	table := Build(second, known{}, s)
	require.Equal(t, 2, old.Group("g0").RPM.Limit(), "nothing is in force before Activate")
	require.True(t, a.Channel.Gate.TryEnter())
	a.Channel.Gate.Leave()
	table.Activate(day)

	a2, b2 := find(t, table, "g0", "a", "m"), find(t, table, "g0", "b", "m")
	require.True(t, a.Same(a2))
	require.Equal(t, Open, usability(a2, day))
	require.Same(t, a.own, a2.own)
	require.Equal(t, Cooling, usability(b2, day))
	require.Same(t, a.Channel.Gate, a2.Channel.Gate)
	require.False(t, a2.Channel.Gate.TryEnter(), "the permit that is out counts against the new limit")
	a.Channel.Gate.Leave()
	require.True(t, a2.Channel.Gate.TryEnter())
	ok, _ := table.Group("g0").RPM.Take(day)
	require.True(t, ok)
	ok, next := table.Group("g0").RPM.Take(day)
	require.False(t, ok)
	require.Equal(t, day.Add(limit.Minute), next)
}

// What changed starts anew, what is gone is forgotten; requests of an older generation go on
// undisturbed.
func TestReloadForgets(t *testing.T) {
	s := NewState(StateOptions{})
	old := build(setup([]config.Channel{channel("a"), channel("b"), channel("c", serving(serves("m", "n")))}), s)
	for _, r := range []*Route{find(t, old, "g0", "a", "m"), find(t, old, "g0", "b", "m"), find(t, old, "g0", "c", "m")} {
		failing(t, r, day, 3, serverError)
	}
	wide := serverError
	wide.Scope = breaker.Account
	under := enter(t, find(t, old, "g0", "c", "n"), day)
	next := setup([]config.Channel{channel("a", credential("sk-new")), channel("b", provider("q")), channel("c", serving(serves("n")))})
	table := build(next, s)
	require.Equal(t, Ready, usability(find(t, table, "g0", "a", "m"), day))
	require.Equal(t, Ready, usability(find(t, table, "g0", "b", "m"), day))
	under.Report(day, wide)
	n := 0
	s.circuits.Each(func(*breaker.Circuit) { n++ })
	require.Equal(t, 4, n, "three routes, and the account's that has just failed")

	table = build(setup([]config.Channel{channel("x")}), s)
	require.Len(t, table.Groups(), 1)
	require.Len(t, s.channels, 1)
	require.Len(t, s.accounts, 1)
	require.Len(t, s.windows, 1)
	n = 0
	s.circuits.Each(func(*breaker.Circuit) { n++ })
	require.Equal(t, 1, n)
	answer(t, find(t, old, "g0", "c", "n"), day)
}

func TestIsolationSurvivesARestart(t *testing.T) {
	kept := newShelf()
	layout := func(secret string) *config.Config {
		return setup([]config.Channel{channel("a", ofAccount("acme"), credential(secret)), channel("b")})
	}
	s := NewState(StateOptions{Store: kept})
	require.NoError(t, s.Load(bg))
	table := build(layout("sk-1"), s)
	for _, name := range []string{"a", "b"} {
		enter(t, find(t, table, "g0", name, "m"), day).Report(day, deadKey)
	}
	require.NoError(t, s.Flush(bg))
	require.Len(t, kept.kept, 2)
	require.Equal(t, storage.Isolation{
		Scope: "account/acme", Reason: "invalid_api_key", Since: day, Fingerprint: config.Fingerprint("sk-1"),
	}, kept.kept["account/acme"])
	require.Contains(t, kept.kept, "channel/g0/b")

	restart := func(c *config.Config) (*Table, *watch) {
		w := &watch{}
		s = NewState(StateOptions{Store: kept, Watcher: w})
		require.NoError(t, s.Load(bg))
		return build(c, s), w
	}
	table, w := restart(layout("sk-1"))
	require.Equal(t, Isolated, usability(find(t, table, "g0", "a", "m"), day))
	require.Equal(t, Isolated, usability(find(t, table, "g0", "b", "m"), day))
	require.Len(t, w.isolations, 2)
	require.Empty(t, w.investigations, "it is the same isolation")

	// A credential that changed while the gateway was down ends it.
	table, _ = restart(layout("sk-2"))
	require.Equal(t, Ready, usability(find(t, table, "g0", "a", "m"), day))
	require.Equal(t, Isolated, usability(find(t, table, "g0", "b", "m"), day))
	require.NoError(t, s.Flush(bg))
	require.Len(t, kept.kept, 1)

	// So does one that changes by a reload, and an attempt with the old one proves nothing.
	old := find(t, table, "g0", "a", "m")
	late := enter(t, old, day)
	enter(t, old, day).Report(day, deadKey)
	table = build(layout("sk-3"), s)
	require.Equal(t, Ready, usability(find(t, table, "g0", "a", "m"), day))
	late.Report(day, deadKey)
	require.Equal(t, Ready, usability(find(t, table, "g0", "a", "m"), day))

	// A channel that is gone takes its isolation along.
	table = build(setup([]config.Channel{channel("c")}), s)
	require.NoError(t, s.Flush(bg))
	require.Empty(t, kept.kept)
	require.Equal(t, Ready, usability(find(t, table, "g0", "c", "m"), day))
}

func TestIsolationInTheRealStore(t *testing.T) {
	db, err := storage.Open(bg, storage.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "i.db")})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c := setup([]config.Channel{channel("a")})
	s := NewState(StateOptions{Store: db})
	r := find(t, build(c, s), "g0", "a", "m")
	enter(t, r, day).Report(day, deadKey)
	require.NoError(t, s.Flush(bg))

	s = NewState(StateOptions{Store: db})
	require.NoError(t, s.Load(bg))
	table := build(c, s)
	now := day.Add(10 * time.Minute)
	r = find(t, table, "g0", "a", "m")
	require.Equal(t, HalfOpen, usability(r, now))
	answer(t, r, now)
	require.NoError(t, s.Flush(bg))
	list, err := db.Isolations(bg)
	require.NoError(t, err)
	require.Empty(t, list)
}

// A store that fails loses nothing that is in force, and says so.
func TestStoreThatFails(t *testing.T) {
	kept := newShelf()
	kept.err = errors.New("disk full")
	w := &watch{}
	s := NewState(StateOptions{Store: kept, Watcher: w})
	require.ErrorIs(t, s.Load(bg), kept.err)
	r := find(t, build(setup([]config.Channel{channel("a")}), s), "g0", "a", "m")
	enter(t, r, day).Report(day, deadKey)
	require.NoError(t, s.Flush(bg))
	require.Equal(t, Isolated, usability(r, day))
	require.Len(t, w.failed, 1)
	require.ErrorIs(t, w.failed[0], kept.err)
	require.ErrorContains(t, w.failed[0], "channel/g0/a")
}

// stuck is a Store whose writes hang until they are let go.
type stuck struct {
	*shelf
	let chan struct{}
}

func (s stuck) PutIsolation(ctx context.Context, i storage.Isolation) error {
	<-s.let
	return s.shelf.PutIsolation(ctx, i)
}

// However slow the store is, no request waits for it, and the last state is what is kept.
func TestSlowStoreHoldsNobodyUp(t *testing.T) {
	kept := stuck{newShelf(), make(chan struct{})}
	s := NewState(StateOptions{Store: kept})
	table := build(setup([]config.Channel{channel("a")}), s)
	r := find(t, table, "g0", "a", "m")
	enter(t, r, day).Report(day, deadKey)
	_, err := table.Reset("g0", "a", "m", day)
	require.NoError(t, err)
	over, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, s.Flush(over), context.Canceled)
	close(kept.let)
	require.NoError(t, s.Flush(bg))
	require.Empty(t, kept.kept)
}

func TestTimeouts(t *testing.T) {
	c := setup([]config.Channel{
		channel("plain"),
		channel("set", func(c *config.Channel) {
			c.Timeouts.FirstByte = config.Some(7 * time.Second)
			c.Models.Models["r"] = config.ChannelModel{Timeouts: config.Timeouts{Idle: config.Some(9 * time.Second)}}
		}),
	})
	table := Build(c, known{"r": {Capabilities: catalog.Reasoning}}, NewState(StateOptions{}))
	const s = time.Second
	for _, want := range []struct {
		channel, model string
		stream         bool
		want           Timeouts
	}{
		{"plain", "m", true, Timeouts{3 * s, 60 * s, 120 * s, 60 * s}},
		{"plain", "m", false, Timeouts{3 * s, 0, 0, 60 * s}},
		{"set", "m", true, Timeouts{3 * s, 7 * s, 120 * s, 60 * s}},
		{"set", "m", false, Timeouts{3 * s, 7 * s, 0, 60 * s}},
		{"set", "r", true, Timeouts{3 * s, 7 * s, 300 * s, 9 * s}},
		{"set", "r", false, Timeouts{3 * s, 7 * s, 0, 9 * s}},
	} {
		require.Equal(t, want.want, find(t, table, "g0", want.channel, want.model).Timeouts(want.stream), "%v", want)
	}
}

// A name that the operator maps is the same model, unless the catalogue knows better.
func TestMapped(t *testing.T) {
	catalogue := known{
		"big": {Base: "big", Maker: "x"}, "big-2026": {Base: "big", Maker: "x"}, "small": {Base: "small", Maker: "x"}, "own": {Base: "own"},
	}
	for upstream, mapped := range map[string]bool{"big": false, "big-2026": false, "unheard-of": false, "own": false, "small": true} {
		c := setup([]config.Channel{channel("a", serving(config.Served{Models: map[string]config.ChannelModel{"big": {UpstreamModel: upstream}}}))})
		r := find(t, Build(c, catalogue, NewState(StateOptions{})), "g0", "a", "big")
		require.Equal(t, mapped, r.Mapped, upstream)
		require.Equal(t, upstream, r.Upstream)
	}
}

// A provider that this version cannot serve gives no candidates.
func TestUnservedProvider(t *testing.T) {
	c := setup([]config.Channel{channel("a"), channel("b", provider("q"))})
	q := c.Providers["q"]
	q.Auth = config.Auth{Kind: config.AuthGCP}
	c.Providers["q"] = q
	table := build(c, NewState(StateOptions{}))
	plan := table.Plan(nil, table.Groups(), "m", PlanOptions{Now: day})
	require.Len(t, plan, 1)
	require.Equal(t, "a", plan[0].Channel.Name)
	require.Len(t, table.Channels(day), 2)
}

// Attempts of every outcome, reloads, switches, resets and readers against each other: no
// probe's permit and no gate's permit is lost.
func TestHammer(t *testing.T) {
	s := NewState(StateOptions{Store: newShelf(), Watcher: &watch{}})
	layouts := []*config.Config{
		setup([]config.Channel{channel("a", ofAccount("x")), channel("b", ofAccount("x")), channel("c")}),
		setup([]config.Channel{channel("a", ofAccount("x")), channel("c", credential("sk-other")), channel("d", serving(everything()))}),
	}
	for i := range layouts {
		layouts[i].Breaker.OpenFor, layouts[i].Breaker.MaxOpen = time.Millisecond, time.Millisecond
	}
	var mu sync.Mutex
	current := build(layouts[0], s)
	table := func() *Table {
		mu.Lock()
		defer mu.Unlock()
		return current
	}
	outcomes := []Outcome{
		{},
		{},
		serverError, serverError, callersOwn, deadKey, rateLimited(time.Millisecond),
		{Class: failure.Cancelled},
		{Class: failure.Overloaded, Health: failure.Counts, Scope: breaker.Account},
		{Class: failure.SchemaInvalid, Health: failure.Counts, Scope: breaker.JSONSchema},
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 9))
			now := day
			var p Permit
			var plan []*Route
			for range 400 {
				now = now.Add(time.Duration(r.IntN(5)) * time.Second)
				t := table()
				plan = t.Plan(plan[:0], t.Groups(), "m", PlanOptions{Now: now})
				for _, route := range plan {
					ask := Ask{SameRoute: r.IntN(5) == 0, Uses: breaker.Capabilities(r.IntN(32))}
					if !route.Availability(now, ask).State.Usable() || !route.Channel.Gate.TryEnter() {
						continue
					}
					if route.Enter(&p, now, ask).State.Usable() {
						p.Answering(now)
						if r.IntN(10) == 0 {
							p.Drop(now)
						}
						p.Report(now, outcomes[r.IntN(len(outcomes))])
					}
					route.Channel.Gate.Leave()
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 60 {
			next := Build(layouts[i%2], known{}, s)
			mu.Lock()
			current = next
			mu.Unlock()
			next.Activate(day)
			_, _ = s.Switches().Put(bg, storage.Switch{Kind: "account", Name: "x"}, next, day)
			next.Channels(day)
			_, _ = next.Reset("g0", "a", "m", day)
			_, _ = s.Switches().Delete(bg, "account", "x")
			next.Circuits(day, func(string, string, string, breaker.State) {})
		}
	})
	wg.Wait()
	require.NoError(t, s.Flush(bg))
	later := day.Add(24 * time.Hour)
	final := build(layouts[0], s)
	for _, c := range final.Channels(later) {
		require.Zero(t, c.Running)
		require.Zero(t, c.Waiting)
		for _, r := range c.Routes {
			require.True(t, r.Route.Availability(later, Ask{Uses: 31}).State.Usable(), "%s: %+v", r.Route, r)
			enter(t, r.Route, later).Report(later, Outcome{})
		}
	}
}

func TestHealthyAttemptAllocatesNothing(t *testing.T) {
	table, a, _ := pair(t, StateOptions{})
	wide := serverError
	wide.Scope = breaker.Provider // a wider circuit exists
	failing(t, a, day, 1, wide)
	_, err := table.state.switches.Put(bg, storage.Switch{Kind: "group", Name: "g0", Until: day.Add(1)}, table, day)
	require.NoError(t, err)
	now := day.Add(time.Minute)
	var p Permit
	attempt := func() {
		now = now.Add(time.Millisecond)
		if a.Availability(now, Ask{}).State != Ready || !a.Channel.Gate.TryEnter() || a.Enter(&p, now, Ask{}).State != Ready {
			panic("not ready")
		}
		_ = p.CircuitWord()
		p.Answering(now)
		p.Report(now, Outcome{FirstOutput: time.Second})
		a.Channel.Gate.Leave()
	}
	attempt()
	require.Zero(t, testing.AllocsPerRun(100, attempt))
}

func BenchmarkHealthyAttempt(b *testing.B) {
	table := build(setup([]config.Channel{channel("a")}), NewState(StateOptions{}))
	r := table.Plan(nil, table.Groups(), "m", PlanOptions{Now: day})[0]
	now := time.Now()
	var p Permit
	b.ReportAllocs()
	for b.Loop() {
		r.Availability(now, Ask{})
		r.Channel.Gate.TryEnter()
		r.Enter(&p, now, Ask{})
		p.Report(now, Outcome{})
		r.Channel.Gate.Leave()
	}
}
