package route

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	bg  = context.Background()
)

// known is a catalogue.
type known map[string]*catalog.Model

func (k known) Model(name string) *catalog.Model { return k[name] }

// channel is a channel with the defaults, serving model m.
func channel(name string, edits ...func(*config.Channel)) config.Channel {
	c := config.Channel{
		Name: name, Provider: "p", Credential: config.Secret("sk-" + name), Priority: 10, Weight: 1,
		MaxConcurrency: 64, Queue: config.Queue{Max: 256, Wait: 2 * time.Second}, Models: serves("m"),
	}
	for _, e := range edits {
		e(&c)
	}
	return c
}

func serves(models ...string) config.Served {
	s := config.Served{Models: map[string]config.ChannelModel{}}
	for _, m := range models {
		s.Models[m] = config.ChannelModel{}
	}
	return s
}

func everything() config.Served { return config.Served{Any: true} }

func priority(p int) func(*config.Channel)     { return func(c *config.Channel) { c.Priority = p } }
func weight(w int) func(*config.Channel)       { return func(c *config.Channel) { c.Weight = w } }
func ofAccount(a string) func(*config.Channel) { return func(c *config.Channel) { c.Account = a } }
func region(r string) func(*config.Channel)    { return func(c *config.Channel) { c.Region = r } }
func provider(p string) func(*config.Channel)  { return func(c *config.Channel) { c.Provider = p } }
func credential(s string) func(*config.Channel) {
	return func(c *config.Channel) { c.Credential = config.Secret(s) }
}

func serving(s config.Served) func(*config.Channel) { return func(c *config.Channel) { c.Models = s } }

// setup is a configuration of groups g0, g1, … with the breaker of case K0: open after 3, for 1 s.
func setup(groups ...[]config.Channel) *config.Config {
	p := config.Provider{
		Adapter: config.AdapterRef{Kind: config.AdapterNative, Name: "openai"}, BaseURL: "http://127.0.0.1:1/v1",
		Auth: config.Auth{Kind: config.AuthBearer},
	}
	c := &config.Config{
		Providers: map[string]config.Provider{"p": p, "q": p},
		Breaker: config.Breaker{
			Window: time.Minute, MinRequests: 10, FailureRatio: 0.5, ConsecutiveFailures: 3,
			OpenFor: time.Second, MaxOpen: 2 * time.Minute, HalfOpenProbes: 1, Ramp: 10 * time.Second,
		},
	}
	for i, channels := range groups {
		c.Groups = append(c.Groups, config.Group{Name: fmt.Sprint("g", i), Strategy: config.Priority, Channels: channels})
	}
	return c
}

func build(c *config.Config, s *State) *Table {
	t := Build(c, known{}, s)
	t.Activate(day)
	return t
}

// pair is a group of two channels A and B, A first.
func pair(t *testing.T, o StateOptions) (table *Table, a, b *Route) {
	table = build(setup([]config.Channel{channel("A", priority(1)), channel("B", priority(2))}), NewState(o))
	plan := table.Plan(nil, table.Groups(), "m", PlanOptions{Now: day})
	require.Len(t, plan, 2)
	return table, plan[0], plan[1]
}

// enter starts an attempt that must be possible.
func enter(t require.TestingT, r *Route, now time.Time) *Permit {
	var p Permit
	a := r.Enter(&p, now, Ask{})
	require.True(t, a.State.Usable(), "%s is %s: %s", r, a.State, a.Reason)
	return &p
}

func answer(t require.TestingT, r *Route, now time.Time) {
	enter(t, r, now).Report(now, Outcome{FirstOutput: 100 * time.Millisecond})
}

var (
	serverError = Outcome{Class: failure.ServerError, Health: failure.Counts, Reason: "status_5xx"}
	callersOwn  = Outcome{Class: failure.ContextOverflow}
	deadKey     = Outcome{Class: failure.UpstreamAuth, Health: failure.Isolates, Reason: "invalid_api_key"}
)

func rateLimited(d time.Duration) Outcome {
	return Outcome{Class: failure.RateLimited, Health: failure.Cools, RetryAfter: d}
}

func failing(t require.TestingT, r *Route, now time.Time, n int, o Outcome) {
	for range n {
		enter(t, r, now).Report(now, o)
	}
}

func usability(r *Route, now time.Time) Usability { return r.Availability(now, Ask{}).State }

// watch keeps what a Watcher is told.
type watch struct {
	mu             sync.Mutex
	circuits       []breaker.Change
	isolations     []IsolationChange
	investigations []Investigation
	failed         []error
}

func (w *watch) CircuitChanged(c breaker.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.circuits = append(w.circuits, c)
}

func (w *watch) IsolationChanged(c IsolationChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isolations = append(w.isolations, c)
}

func (w *watch) Investigate(i Investigation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.investigations = append(w.investigations, i)
}

func (w *watch) NotStored(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

// shelf is a Store in memory.
type shelf struct {
	mu   sync.Mutex
	kept map[string]storage.Isolation
	err  error
}

func newShelf() *shelf { return &shelf{kept: map[string]storage.Isolation{}} }

func (s *shelf) Isolations(context.Context) (list []storage.Isolation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.kept {
		list = append(list, i)
	}
	return list, s.err
}

func (s *shelf) PutIsolation(_ context.Context, i storage.Isolation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.kept[i.Scope] = i
	}
	return s.err
}

func (s *shelf) DeleteIsolation(_ context.Context, scope string) (storage.Isolation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.kept[scope]
	if s.err == nil && !ok {
		return i, storage.ErrNotFound
	}
	if s.err == nil {
		delete(s.kept, scope)
	}
	return i, s.err
}

// T25: of twenty requests at once, one is the probe of the half-open route; when it has
// answered, all go there again.
func TestHalfOpenAdmitsExactlyOneProbe(t *testing.T) {
	_, a, b := pair(t, StateOptions{})
	failing(t, a, day, 3, serverError)
	require.Equal(t, Open, usability(a, day))
	now := day.Add(1100 * time.Millisecond)
	served := map[*Route]int{}
	permits := make([]Permit, 20)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range permits {
		wg.Go(func() {
			for _, r := range []*Route{a, b} {
				if r.Availability(now, Ask{}).State.Usable() && r.Enter(&permits[i], now, Ask{}).State.Usable() {
					mu.Lock()
					served[r]++
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, map[*Route]int{a: 1, b: 19}, served)
	require.Equal(t, "half_open", a.CircuitWord(now))
	for i := range permits {
		want := "closed"
		if permits[i].Route() == a {
			want = "half_open"
		}
		require.Equal(t, want, permits[i].CircuitWord())
		permits[i].Report(now.Add(500*time.Millisecond), Outcome{})
	}
	now = now.Add(500 * time.Millisecond)
	require.Equal(t, "closed", a.CircuitWord(now))
	for range 5 {
		plan := a.Channel.Group.table.Plan(nil, a.Channel.Group.table.Groups(), "m", PlanOptions{Now: now})
		require.Same(t, a, plan[0])
		answer(t, plan[0], now)
	}
}

// T26: what a caller does wrong, and a caller that leaves, count for nothing.
func TestCallerFaultsNeverOpen(t *testing.T) {
	_, a, _ := pair(t, StateOptions{})
	failing(t, a, day, 50, callersOwn)
	failing(t, a, day, 10, Outcome{Class: failure.Cancelled, Health: failure.Counts})
	require.Equal(t, Ready, usability(a, day))
	failing(t, a, day, 2, serverError)
	require.Equal(t, Ready, usability(a, day), "the failures before did not count")
	require.Nil(t, a.Channel.status(day).Isolation)
}

func TestAvailability(t *testing.T) {
	type fact func(r *Route)
	opened := func(r *Route) { failing(t, r, day, 3, serverError) }
	cooled := func(r *Route) { enter(t, r, day).Report(day, rateLimited(7*time.Second)) }
	isolated := func(r *Route) { enter(t, r, day).Report(day, deadKey) }
	switched := func(r *Route) {
		_, err := r.state.switches.Put(bg, storage.Switch{Kind: "group", Name: "g0", Until: day.Add(time.Hour)}, r.Channel.Group.table, day)
		require.NoError(t, err)
	}
	busy := func(r *Route) {
		r.Channel.Gate.Resize(1, 1, time.Second)
		require.True(t, r.Channel.Gate.TryEnter())
	}
	full := func(r *Route) {
		r.Channel.Gate.Resize(1, 0, time.Second)
		require.True(t, r.Channel.Gate.TryEnter())
	}
	probing := func(r *Route) {
		opened(r)
		enter(t, r, day.Add(time.Second))
	}
	for name, c := range map[string]struct {
		facts []fact
		after time.Duration
		same  bool
		want  Availability
	}{
		"well":                       {want: Availability{State: Ready}},
		"well, same route":           {same: true, want: Availability{State: Ready}},
		"open":                       {facts: []fact{opened}, want: Availability{State: Open, Until: day.Add(time.Second), Reason: ReasonOpen}},
		"open for its time":          {facts: []fact{opened}, after: time.Second - 1, want: Availability{State: Open, Until: day.Add(time.Second), Reason: ReasonOpen}},
		"half-open":                  {facts: []fact{opened}, after: time.Second, want: Availability{State: HalfOpen, Reason: ReasonProbe}},
		"half-open, same route":      {facts: []fact{opened}, after: time.Second, same: true, want: Availability{State: Open, Reason: ReasonProbe}},
		"a probe is out":             {facts: []fact{probing}, after: time.Second, want: Availability{State: Open, Reason: ReasonProbe}},
		"cooling":                    {facts: []fact{cooled}, want: Availability{State: Cooling, Until: day.Add(7 * time.Second), Reason: ReasonCooling}},
		"cooled down":                {facts: []fact{cooled}, after: 7 * time.Second, want: Availability{State: Ready}},
		"isolated":                   {facts: []fact{isolated}, want: Availability{State: Isolated, Until: day.Add(time.Minute), Reason: ReasonIsolated}},
		"isolation may be probed":    {facts: []fact{isolated}, after: time.Minute, want: Availability{State: HalfOpen, Reason: ReasonProbe}},
		"isolation, same route":      {facts: []fact{isolated}, after: time.Minute, same: true, want: Availability{State: Isolated, Reason: ReasonIsolated}},
		"switched off":               {facts: []fact{switched}, want: Availability{State: SwitchedOff, Until: day.Add(time.Hour), Reason: ReasonSwitchedOff}},
		"switched on by itself":      {facts: []fact{switched}, after: time.Hour, want: Availability{State: Ready}},
		"busy":                       {facts: []fact{busy}, want: Availability{State: Ready, Busy: true}},
		"full":                       {facts: []fact{full}, want: Availability{State: Full, Reason: ReasonFull}},
		"switched off before others": {facts: []fact{isolated, full, switched}, want: Availability{State: SwitchedOff, Until: day.Add(time.Hour), Reason: ReasonSwitchedOff}},
		"isolated before full":       {facts: []fact{full, isolated}, want: Availability{State: Isolated, Until: day.Add(time.Minute), Reason: ReasonIsolated}},
		"open before cooling":        {facts: []fact{cooled7AndOpened(t)}, want: Availability{State: Open, Until: day.Add(time.Second), Reason: ReasonOpen}},
	} {
		t.Run(name, func(t *testing.T) {
			_, r, _ := pair(t, StateOptions{})
			for _, f := range c.facts {
				f(r)
			}
			now := day.Add(c.after)
			ask := Ask{SameRoute: c.same}
			require.Equal(t, c.want, r.Availability(now, ask))
			var p Permit
			got := r.Enter(&p, now, ask)
			if c.want.State == Full || c.want.Busy {
				return // capacity was entered before
			}
			require.Equal(t, c.want, got, "Enter looks again")
			require.Equal(t, c.want.State.Usable(), p.Route() == r)
		})
	}
}

// cooled7AndOpened has attempts under way when the account begins to rest, that then fail.
func cooled7AndOpened(t *testing.T) func(r *Route) {
	return func(r *Route) {
		var under []*Permit
		for range 3 {
			under = append(under, enter(t, r, day))
		}
		enter(t, r, day).Report(day, rateLimited(7*time.Second))
		for _, p := range under {
			p.Report(day, serverError)
		}
	}
}
